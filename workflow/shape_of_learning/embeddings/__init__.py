"""One forward pass over windows of text, and the files that hold its hidden states."""

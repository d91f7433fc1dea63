"""One model on one text, without the workflow: in a notebook, in a training loop, on the command line."""

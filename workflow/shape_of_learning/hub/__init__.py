"""The Hugging Face Hub: what it lists, and its files on their way to a folder."""

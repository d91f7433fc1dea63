"""The measures of shape, each a function on arrays: NumPy arrays and torch tensors alike."""

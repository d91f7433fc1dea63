"""What the scripts of the workflow share around their command lines."""

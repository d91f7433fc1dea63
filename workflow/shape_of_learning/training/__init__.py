"""Small models that are trained here, and checkpoints that are trained further on a task."""

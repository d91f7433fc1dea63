"""Checkpoints that are trained further on a task, and saved as any published checkpoint is."""

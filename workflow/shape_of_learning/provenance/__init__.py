"""The description of a run: its inputs, software and machine, and the digests of its results."""

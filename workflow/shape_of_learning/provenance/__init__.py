"""What a run was computed from and by, as an RO-Crate, and whether its files are still those."""

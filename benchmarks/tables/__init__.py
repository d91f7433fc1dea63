"""One module per table: who is measured, at which sizes, what should agree, and the targets."""

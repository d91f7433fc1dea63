"""Batches of vectors, and the tables of what was estimated on them."""

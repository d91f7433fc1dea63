"""Batches of vectors, measures of them, and the tables of estimates."""

"""Labelled texts, and what a representation of them is worth."""

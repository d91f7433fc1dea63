"""Labelled texts, and scores of predictions of their labels."""

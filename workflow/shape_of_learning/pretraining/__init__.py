"""Small models trained on the corpus, saved as any published checkpoint is."""

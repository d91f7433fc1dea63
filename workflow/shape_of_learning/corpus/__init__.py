"""Prepare the text of a run: download, verify and clean a corpus, choose an alphabet, draw windows."""

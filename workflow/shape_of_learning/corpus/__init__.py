"""From a URL to the text that models read: download, verify, clean, choose an alphabet, sample."""

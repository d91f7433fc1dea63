"""What the Snakefile needs to know before any job starts; imports nothing heavy."""

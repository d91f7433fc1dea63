"""The plan of a run, which the Snakefile makes before any job starts; imports nothing heavy."""

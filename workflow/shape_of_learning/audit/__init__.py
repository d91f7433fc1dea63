"""Which revisions of a repository are what their names say, asked of the Hub or of a disk."""

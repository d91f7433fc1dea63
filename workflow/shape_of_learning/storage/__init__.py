"""Files: written whole or not at all, locked, read with errors that a user can act on."""

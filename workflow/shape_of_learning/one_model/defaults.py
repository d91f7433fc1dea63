"""How much is measured of one model, as by default in the configuration; to be read before anything is imported."""

WINDOWS, WINDOW_CHARACTERS, BATCH_VECTORS, NEIGHBOURS = 128, 512, 4096, 128
BUILT_IN_TEXT = "the documentation that comes with Python"

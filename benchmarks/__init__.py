"""Speed of the library, beside peers and on a GPU: `python -m benchmarks.NAME`. Nothing here is a timed test."""

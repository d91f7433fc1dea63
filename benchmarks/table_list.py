"""The tables, in the order of the page."""

TABLES = (
    "estimators",
    "neighbours",
    "anisotropy",
    "streamed",
    "memory",
    "dump",
    "corpus",
    "overhead",
    "start_up",
    "growth",
    "gpu",
)

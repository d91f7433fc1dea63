"""The tables, in the order of the page."""

TABLES = (
    "estimators",
    "neighbours",
    "anisotropy",
    "memory",
    "dump",
    "without_a_dump",
    "corpus",
    "overhead",
    "start_up",
    "growth",
    "gpu",
)

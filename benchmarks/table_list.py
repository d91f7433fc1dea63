"""The tables, in the order of their page: docs/performance.md, and what the others are about."""

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
# Not of time and memory but of the numbers themselves.
STATISTICS = ("dependence",)

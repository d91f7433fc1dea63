"""The tables: of docs/performance.md in its order, and those with a page of their own."""

TABLES = (
    "estimators",
    "neighbours",
    "anisotropy",
    "pairs",
    "spread",
    "memory",
    "dump",
    "without_a_dump",
    "corpus",
    "demo_jobs",
    "overhead",
    "start_up",
    "growth",
    "gpu",
)
# Not of speed: numbers that do not depend on the machine.
PAGES = {
    "verdicts": "docs/checkpoints.md",
    "dependence": "docs/statistics.md",
    "coverage": "docs/statistics.md",
    "further_coverage": "docs/statistics.md",
}

"""Anisotropy streamed from the file of a layer of 121,000 vectors, as many as 1000 windows have.

The least that one pass can do is to read the file and add up X^T X in float64 (`read and products`);
`streamed` is that with the mean, and both anisotropies from it; `job` is the script with all four measures of
isotropy, its start-up and the count of distinct rows. Singular values are those of the first 4096 rows only,
beside ours of the same. One thread, as a job has. The file has just been written, so it is read from memory.
"""

from dataclasses import replace
from pathlib import Path

from benchmarks.contest import Contender, Measured, contest, run_contender
from benchmarks.scripts import script
from benchmarks.targets import Agreement, Target
from shape_of_learning.metrics.measurements import BATCH_COLUMNS
from shape_of_learning.storage.csv_table import read_rows

TITLE = "Streamed anisotropy"
SIZE, SUBSET = (121_000, 4096), 4096
TINY, TINY_SUBSET = (300, 20), 300
ESTIMATORS = ("anisotropy", "anisotropy_uncentered", "average_cosine", "average_cosine_centered")
READ, PRODUCTS, STREAMED, JOB = "read", "read and products", "streamed", "job, four measures"
OURS, SVD = "ours, in memory", "singular values, in memory"
OWN = (STREAMED, JOB, OURS)


def measure(folder: Path, tiny: bool, repeats: int | None) -> list[Measured]:
    """Write a layer, and pass over it in several ways."""
    (tokens, width), subset = (TINY, TINY_SUBSET) if tiny else (SIZE, SUBSET)
    layer = {"folder": folder, "tokens": tokens, "width": width}
    run_contender(Contender("layer", "benchmarks.streaming:writing", layer))
    tables = [str(folder / f"{name}.csv") for name in ESTIMATORS]
    job = ["--embeddings", str(folder), "--layer", "0", "--batch-vectors", str(tokens)]
    job += ["--estimator", *ESTIMATORS, "--output", *tables]
    size, few = f"{tokens} x {width}", f"first {subset}"
    contenders = [
        *(
            Contender(
                name,
                "benchmarks.streaming:pass_over",
                {"folder": folder, "rows": tokens, "kind": kind},
                size,
                threads=1,
            )
            for name, kind in ((READ, "read"), (PRODUCTS, "products"), (STREAMED, "streamed"))
        ),
        Contender(JOB, command=script("measure_isotropy", job), size=size, threads=1),
        *(
            Contender(
                name,
                "benchmarks.streaming:in_memory",
                {"folder": folder, "rows": subset, "decomposed": name == SVD},
                few,
                threads=1,
            )
            for name in (OURS, SVD)
        ),
    ]
    measured = contest(contenders, repeats)
    found = [float(read_rows(Path(table), BATCH_COLUMNS)[0][-1]) for table in tables[:2]]
    values = dict(zip(("anisotropy", "anisotropy, not centred"), found, strict=True))
    return [replace(row, values=values) if row.contender == JOB else row for row in measured]


ALL = "121000 x 4096"
TARGETS = [
    Target("memory, streamed", 1, lambda r: r[ALL, STREAMED].peak_gb, " GB"),
    Target("memory, the job with four measures", 1, lambda r: r[ALL, JOB].peak_gb, " GB"),
    Target(
        "time, against reading once and one pass of products",
        1.5,
        lambda r: r.faster(ALL, PRODUCTS, STREAMED),
        " times",
    ),
]
# Both in float64; rounding of the sums of 121,000 products is some 1e-12 of them.
AGREEMENTS = [
    *(Agreement(value, STREAMED, JOB, 1e-9) for value in ("anisotropy", "anisotropy, not centred")),
    Agreement("anisotropy", OURS, SVD, 1e-9),
]

"""The description of a run: what it was computed from and by, and the digest of each of its results.

REQUIRED INPUTS: all results; the benchmarks of their jobs.
OUTPUTS:
    <results>/ro-crate-metadata.json      an RO-Crate, whose root is the folder of the results
    <results>/provenance/outputs.sha256   SHA-256 of all results, as sha256sum checks them (`make verify`)
    <results>/provenance/jobs.csv         time and memory of each job
    <results>/provenance/locks/           copies of the locks
STEPS: provenance.
"""


rule provenance:
    """Describe the run as an RO-Crate."""
    input:
        results=results_of_the_run,
    output:
        crate=report(
            "<results>/ro-crate-metadata.json",
            caption="../report/crate.rst",
            category="Provenance",
            labels={"result": "Description of the run, an RO-Crate"},
        ),
        digests="<results>/provenance/outputs.sha256",
        jobs=report(
            "<results>/provenance/jobs.csv",
            caption="../report/jobs.rst",
            category="Provenance",
            labels={"result": "Time and memory of each job"},
        ),
    log:
        "<logs>/provenance.log",
    benchmark:
        "<benchmarks>/provenance.tsv"
    localrule: True
    conda:
        "../../envs/provenance.yaml"
    params:
        code=science("describe_run"),
        run=described_run,
        locks=locks_of_the_run,
        results=subpath(output.crate, parent=True),
    message:
        "Describing the run"
    script:
        "../scripts/describe_run.py"

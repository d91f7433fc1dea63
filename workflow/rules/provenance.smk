"""The description of a run: what it was computed from and by, and the digest of each of its results.

REQUIRED INPUTS: all results; the records and benchmarks that jobs leave beside their logs.
OUTPUTS:
    <results>/provenance/   an RO-Crate: ro-crate-metadata.json, links to the results, copies of the locks, and
        outputs.sha256      SHA-256 of all outputs, as sha256sum checks them
        jobs.csv            rule, environment, time and memory of each job
        rules.csv           their sums
        environments.json   software, hardware and state of the workflow, where and by which jobs were computed
STEPS: describe_run. `make verify` compares.
"""


rule describe_run:
    """Describe the run as an RO-Crate, in a folder that is replaced as a whole."""
    input:
        results=described_results,
    output:
        crate=report(
            "<results>/provenance/ro-crate-metadata.json",
            caption="../report/crate.rst",
            category="Provenance",
            labels={"result": "Description of the run, an RO-Crate"},
        ),
        jobs=report(
            "<results>/provenance/jobs.csv",
            caption="../report/jobs.rst",
            category="Provenance",
            labels={"result": "Time and memory of each job"},
        ),
        rules=report(
            "<results>/provenance/rules.csv",
            caption="../report/rules.rst",
            category="Provenance",
            labels={"result": "Time and memory of each rule"},
        ),
        environments=report(
            "<results>/provenance/environments.json",
            caption="../report/environments.rst",
            category="Provenance",
            labels={"result": "Software and hardware"},
        ),
    log:
        "<logs>/provenance.log",
    benchmark:
        "<benchmarks>/provenance.tsv"
    localrule: True
    conda:
        "../../envs/provenance.yaml"
    params:
        science=science("describe_run"),
        run=described_run,
        results=subpath(output.crate, ancestor=2),
        locks=lambda wildcards: [lock_file(name) for name in models_from(HubSource)],
        jobs=[own_path("<logs>"), own_path("<benchmarks>")],
        folder=subpath(output.crate, parent=True),
    message:
        "Describing the run"
    shell:
        'python "$SCRIPTS/describe_run.py" --run {params.run:q} --results {params.results:q}'
        " --outputs {input.results:q} --locks {params.locks:q} --jobs {params.jobs:q}"
        " --output {params.folder:q} --log {log:q}"


rule provenance:
    input:
        rules.describe_run.output,

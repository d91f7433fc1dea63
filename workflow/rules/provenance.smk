"""The description of a run: what it was computed from and by, and the digest of each of its results.

REQUIRED INPUTS: all results; the benchmarks of their jobs.
OUTPUTS:
    <results>/ro-crate-metadata.json         an RO-Crate, whose root is the folder of the results
    <results>/provenance/outputs.sha256      SHA-256 of all results, as sha256sum checks them (`make verify`)
    <results>/provenance/jobs.csv            time and memory of each job
    <results>/provenance/configuration.yaml  the configuration, with all defaults
    <results>/provenance/locks/              copies of the locks
STEPS: provenance.
"""

from shape_of_learning.errors import settings_without_secrets


def results_of_the_run(wildcards):
    """All that `all` asks for, but for its description."""
    return [
        *expand("<results>/tables/{table}.csv", table=GATHERED),
        *(["<results>/tables/weights.csv"] if RUN.weight_tables() else []),
        *(["<results>/tables/massive.csv"] if RUN.weight_models("massive") else []),
        *expand("<results>/checkpoints/{model}.csv", model=RUN.of_kind("repository")),
        *(file for target in (*DRAWN, *WRITTEN) for file in files_of_target(target)),
        *all_claims,
        *(all_choices if SETTINGS["choices"]["judged"] else []),
        EXPLORER,
        FINDINGS,
    ]


def described_run():
    """What the plan knows of the run."""
    targets = [*(("figures", each) for each in DRAWN), *(("tables", each) for each in WRITTEN)]
    of_papers = {
        f"{folder}/{each}": f"{RUN.name_in_paper(each)} of {RUN.paper_of(each).title}"
        for folder, each in targets
    }
    of_claims = {f"claims/{paper}": f"Verdicts on {TITLES[paper]}" for paper in CLAIMS}
    of_choices = {f"figures/{figure}": title for figure, title in CHOICES.figures.items()}
    shown = {RUN.paper_of(each).name for _, each in targets}
    return {
        "name": SETTINGS["run"] or "",
        "source": SETTINGS["corpus"]["source"],
        "inputs": [
            f"corpus/{SETTINGS['corpus']['source']}/alphabet.json",
            *(
                f"checkpoints/{model}/{each.name}.tensors.csv"
                for model in RUN.measured
                for each in RUN.checkpoints(model)
            ),
        ],
        "papers": [(paper.title, paper.citation) for paper in RUN.papers if paper.name in shown],
        "titles": {**of_claims, **of_choices, **of_papers},
    }


rule provenance:
    """Describe the run as an RO-Crate."""
    input:
        results=results_of_the_run,
    output:
        crate=listed(
            "<results>/ro-crate-metadata.json", "Provenance", "crate", {"result": "RO-Crate"}
        ),
        digests="<results>/provenance/outputs.sha256",
        jobs=listed("<results>/provenance/jobs.csv", "Provenance", "jobs"),
        configuration=listed(
            "<results>/provenance/configuration.yaml", "Provenance", "configuration"
        ),
    log:
        "<logs>/provenance.log",
    benchmark:
        "<benchmarks>/provenance.tsv"
    localrule: True
    conda:
        "../../envs/provenance.yaml"
    params:
        code=code("describe_run"),
        run=told(lambda: for_report(described_run())),
        configuration=for_report(settings_without_secrets(SETTINGS)),
        locks=[str(RUN.lock_file(name)) for name in RUN.of_kind("repository")],
        results=subpath(output.crate, parent=True),
    script:
        "../scripts/describe_run.py"

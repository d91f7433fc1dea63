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

from shape_of_learning.errors import hide_secrets_in_settings


def list_results(wildcards):
    """All that `all` asks for, but for its description."""
    return [
        *expand("<results>/tables/{table}.csv", table=GATHERED),
        *(["<results>/tables/weights.csv"] if RUN.list_weight_tables() else []),
        *(["<results>/tables/massive.csv"] if RUN.list_weight_models("massive") else []),
        *expand("<results>/checkpoints/{model}.csv", model=RUN.list_models("repository")),
        *(file for target in (*DRAWN, *WRITTEN) for file in list_target_files(target)),
        *all_claims,
        *(exit_on_input_error(list_choice_results) if SETTINGS["choices"]["judged"] else []),
        EXPLORER,
        FINDINGS,
    ]


def describe_run():
    """What the plan knows of the run."""
    targets = [*(("figures", each) for each in DRAWN), *(("tables", each) for each in WRITTEN)]
    of_papers = {
        f"{folder}/{each}": f"{RUN.name_in_paper(each)} of {RUN.find_paper(each).title}"
        for folder, each in targets
    }
    of_claims = {f"claims/{paper}": f"Verdicts on {TITLES[paper]}" for paper in CLAIMS}
    claims = plan_choices().claims if SETTINGS["choices"]["judged"] else []
    of_choices = {f"figures/specification_{claim}": name_specification(claim) for claim in claims}
    shown = {RUN.find_paper(each).name for _, each in targets}
    return {
        "name": SETTINGS["run"] or "",
        "source": SETTINGS["corpus"]["source"],
        "inputs": [
            f"corpus/{SETTINGS['corpus']['source']}/alphabet.json",
            *(
                f"checkpoints/{model}/{each.name}.tensors.csv"
                for model in RUN.measured
                for each in RUN.list_checkpoints(model)
            ),
        ],
        "papers": [(paper.title, paper.citation) for paper in RUN.papers if paper.name in shown],
        "titles": {**of_claims, **of_choices, **of_papers},
    }


rule provenance:
    """Describe the run as an RO-Crate."""
    input:
        results=list_results,
    output:
        crate=list_in_report(
            "<results>/ro-crate-metadata.json", "Provenance", "crate", {"result": "RO-Crate"}
        ),
        digests="<results>/provenance/outputs.sha256",
        jobs=list_in_report("<results>/provenance/jobs.csv", "Provenance", "jobs"),
        configuration=list_in_report(
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
        code=lambda wildcards: digest_code("describe_run"),
        run=ask_plan(lambda: escape_for_report(describe_run())),
        configuration=lambda wildcards: escape_for_report(hide_secrets_in_settings(SETTINGS)),
        locks=lambda wildcards: [str(RUN.lock_file(name)) for name in RUN.list_models("repository")],
        results=subpath(output.crate, parent=True),
    script:
        "../scripts/describe_run.py"

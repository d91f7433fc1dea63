"""The description of a run: its inputs and software, and the digest of each of its results.

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
from shape_of_learning.provenance.job import ProvenanceJob


def list_results(wildcards):
    """List all files of target `all`, except for the description."""
    return [
        *expand("<results>/tables/{table}.csv", table=GATHERED_TABLES),
        *(["<results>/tables/weights.csv"] if RUN.list_weight_tables() else []),
        *(["<results>/tables/massive.csv"] if RUN.list_table_models("massive") else []),
        *expand("<results>/checkpoints/{model}.csv", model=RUN.list_models("repository")),
        *(
            file
            for target in (*DRAWN_FIGURES, *WRITTEN_TABLES)
            for file in list_target_files(target)
        ),
        *all_claims,
        *(exit_on_input_error(list_choice_results) if SETTINGS.choices.judged else []),
        EXPLORER,
        FINDINGS,
    ]


def title_results():
    """Return the titles of figures, tables and pages of verdicts for readers, by path without suffix."""
    targets = [
        *(("figures", name) for name in DRAWN_FIGURES),
        *(("tables", name) for name in WRITTEN_TABLES),
    ]
    titles = {f"claims/{paper}": f"Verdicts on {TITLES[paper]}" for paper in CLAIMS}
    for claim in plan_choices().claims if SETTINGS.choices.judged else []:
        titles[f"figures/specification_{claim}"] = name_specification(claim)
    for folder, name in targets:
        titles[f"{folder}/{name}"] = f"{RUN.name_in_paper(name)} of {RUN.find_paper(name).title}"
    return titles


def make_provenance_job():
    """Make the job that describes the run, from its plan."""
    source = SETTINGS.corpus.source
    papers = {RUN.find_paper(name).name for name in (*DRAWN_FIGURES, *WRITTEN_TABLES)}
    return ProvenanceJob(
        name=SETTINGS.run or "",
        source=source,
        inputs=(
            f"corpus/{source}/alphabet.json",
            *(
                f"checkpoints/{model}/{checkpoint.name}.tensors.csv"
                for model in RUN.measured_models
                for checkpoint in RUN.list_checkpoints(model)
            ),
        ),
        locks=tuple(str(RUN.name_lock_file(name)) for name in RUN.list_models("repository")),
        papers=tuple((paper.title, paper.citation) for paper in RUN.papers if paper.name in papers),
        titles=title_results(),
        configuration=hide_secrets_in_settings(SETTINGS.dump()),
    )


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
        job=ask_job(make_provenance_job),
    script:
        "../scripts/describe_run.py"

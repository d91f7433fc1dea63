"""What describes a run, what it describes, and how a report calls that."""

from shape_of_learning import __version__ as VERSION
from shape_of_learning.plan.workflow_state import workflow_state
from shape_of_learning.provenance.described_run import DescribedRun
from shape_of_learning.script_arguments import job_record

LARGE_RESULTS = [f"<results>/tables/{table}.csv" for table in GATHERED]


def results_of_the_run(wildcards):
    """All that `all` asks for, but for its description."""
    return [
        *LARGE_RESULTS,
        *table_of_all_weights(wildcards),
        "<results>/tables/protocol.yaml",
        *all_integrity_tables,
        *all_figures_and_tables(wildcards),
        *all_claims,
        *(all_choices if setting("choices", "judged") else []),
        EXPLORER,
    ]


def described_results(wildcards):
    """The same, those ever old beside which a small file of the same job says whether they are others."""
    files = results_of_the_run(wildcards)
    small = {file.rpartition(".")[0] for file in files if file.endswith(".md")}
    return [
        (
            ancient(file)
            if file.endswith((".pdf", ".png"))
            or (file.rpartition(".")[0] in small and not file.endswith(".md"))
            else file
        )
        for file in files
    ]


def described_run(wildcards):
    """What the plan knows of the run, as JSON."""
    drawn, written = CONFIGURATION.figures, CONFIGURATION.tables
    titles = {f"figures/{each}": f"{name_in_paper(each)} of {TITLES[each]}" for each in drawn}
    titles |= {f"tables/{each}": f"{name_in_paper(each)} of {TITLES[each]}" for each in written}
    shown = {PAPER_OF[each] for each in (*drawn, *written)}
    return DescribedRun(
        name=CONFIGURATION.settings["run"] or "",
        source=setting("corpus", "source"),
        models={
            name: (model.label, [each.name for each in checkpoints(name)])
            for name, model in CONFIGURATION.models.items()
        },
        papers=[(paper.title, paper.citation) for paper in PAPERS if paper.name in shown],
        titles=NAMES_OF_RESULTS | titles,
    ).to_json()


def say_which_workflow_this_is():
    """Let jobs know the state of the code by which they are planned; no result depends on it."""
    is_unpacked = WORKFLOW.parents[1] == Path(UNPACKED).absolute()
    state = workflow_state(WORKFLOW.parent, WORKFLOW.parent.name if is_unpacked else "")
    versions = {"version": VERSION, "snakemake": SNAKEMAKE_VERSION}
    os.environ[job_record.VARIABLE] = json.dumps({**versions, **state})

"""What describes a run, what it describes, and how a report calls that."""


def results_of_the_run(wildcards):
    """All that `all` asks for, but for its description."""
    return [
        *expand("<results>/tables/{table}.csv", table=GATHERED),
        *table_of_all_weights(wildcards),
        "<results>/tables/protocol.yaml",
        *all_integrity_tables,
        *all_figures_and_tables(wildcards),
        *all_claims,
        *(all_choices if setting("choices", "judged") else []),
        EXPLORER,
    ]


def locks_of_the_run(wildcards):
    """The locks of the models that come from the Hub."""
    return [lock_file(name) for name in models_from("repository")]


def described_run(wildcards):
    """What the plan knows of the run."""
    drawn, written = CONFIGURATION.figures, CONFIGURATION.tables
    titles = {f"figures/{each}": f"{name_in_paper(each)} of {TITLES[each]}" for each in drawn}
    titles |= {f"tables/{each}": f"{name_in_paper(each)} of {TITLES[each]}" for each in written}
    shown = {PAPER_OF[each] for each in (*drawn, *written)}
    return {
        "name": CONFIGURATION.settings["run"] or "",
        "source": setting("corpus", "source"),
        "models": {name: described_model(name) for name in CONFIGURATION.models},
        "papers": [(paper.title, paper.citation) for paper in PAPERS if paper.name in shown],
        "titles": NAMES_OF_RESULTS | titles,
    }


def described_model(name):
    """Label of a model, and the commit of each checkpoint that comes from the Hub."""
    pinned = curve(name).lock.revisions if name in models_from("repository") else {}
    revisions = [each.name for each in checkpoints(name)]
    return {
        "label": MODELS[name].label,
        "repository": next((pinned[each].repository for each in revisions if each in pinned), ""),
        "revisions": {
            each: pinned[each].commit if each in pinned else "" for each in revisions
        },
    }

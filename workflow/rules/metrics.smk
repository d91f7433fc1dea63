"""What is measured of the layers of a dump.

REQUIRED INPUTS: the embeddings of a checkpoint.
OUTPUTS:
    <results>/measurements/{model}/{revision}/{family}/layer_{layer}.csv
        The tidy table: for each estimator of the family a row per batch, and one of the layer with values
        without each group of windows.
STEPS: measure. Estimators of one family share what is expensive: a neighbour search (dimension), spectra
(spectrum), the fit of a block (linearity). On a cluster, all that is wanted of one checkpoint travels as one group.
"""


rule measure:
    """Measure one layer with all estimators of a family that are wanted of the checkpoint."""
    input:
        embeddings="<results>/embeddings/{model}/{revision}",
    output:
        "<results>/measurements/{model}/{revision}/{family}/layer_{layer}.csv",
    log:
        "<logs>/measurements/{model}/{revision}/{family}/layer_{layer}.log",
    benchmark:
        "<benchmarks>/measurements/{model}/{revision}/{family}/layer_{layer}.tsv"
    wildcard_constraints:
        model=any_of(MODELS),
        family=any_of(FAMILIES),
    group:
        checkpoint_group
    conda:
        "../../envs/metrics.yaml"
    resources:
        **if_counted(mem_mb=measure_memory, runtime=measure_minutes),
    params:
        code=science_of_family,
        layers=model_layers,
        measures=measures_of_family,
        measuring=MEASURING,
    script:
        "../scripts/measure.py"

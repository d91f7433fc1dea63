# The workflow lives in workflow/; this file lets `snakemake` find it from the top of the repository.
include: "workflow/Snakefile"


# An included file cannot set the default target of the one that includes it.
workflow.default_target = "all"

# The workflow lives in workflow/; this file lets `snakemake` find it from the top of the repository.
include: "workflow/Snakefile"


make_default("all")

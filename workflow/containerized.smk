"""The same workflow, with each job inside the image that envs/apptainer.def describes.

It is for `snakemake --snakefile workflow/containerized.smk --software-deployment-method conda apptainer`; the
image is looked for in the working directory.
"""


containerized: "shape-of-learning.sif"


include: "Snakefile"


# A file that includes another does not take over its default target.
rule everything:
    default_target: True
    input:
        rules.all.input,

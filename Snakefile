"""The entry at the top of the repository: all that the workflow in workflow/ makes."""


include: "workflow/Snakefile"


# A file that includes another does not take over its default target.
rule everything:
    default_target: True
    input:
        rules.all.input,

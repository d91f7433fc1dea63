"""What the rules of the corpus ask of a source."""

from shape_of_learning.plan.corpus_receipt import local_origin


def source_entry(wildcards):
    return setting("corpus", "sources")[wildcards.source]


def raw_corpus(wildcards):
    """Where the source is, unpacked."""
    return own_path(f"<resources>/corpus/{wildcards.source}.raw")


def source_member(wildcards):
    """The option by which fetch_corpus.py takes one file of an archive."""
    entry = source_entry(wildcards)
    return [f"--member={entry['member']}"] if "member" in entry else []


def source_origin(wildcards):
    """What a source is computed from that is a file of this machine."""
    receipt = own_path(f"<results>/corpus/{wildcards.source}/source.json")
    return local_origin(source_entry(wildcards), Path(receipt))


def source_format(wildcards):
    return source_entry(wildcards)["format"]


def part_of_corpus(wildcards):
    """The option by which clean_corpus.py reads a part only; none as a rule."""
    first_bytes = setting("corpus", "first_bytes")
    return [] if first_bytes is None else [f"--first-bytes={first_bytes}"]


BUILTIN_SOURCES = [n for n, s in setting("corpus", "sources").items() if "builtin" in s]
FETCHED_SOURCES = [n for n, s in setting("corpus", "sources").items() if "urls" in s]

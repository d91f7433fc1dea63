"""What is known of a revision before any of its weights is downloaded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MISSING = "missing"
NO_WEIGHTS = "no weights"
MIXED_SHARDS = "mixed shards"


@dataclass(frozen=True)
class WeightFile:
    """Size in bytes and hash of a file; the hash is ``sha256:...``, or ``git:...`` outside LFS."""

    bytes: int
    hash: str


@dataclass(frozen=True)
class WeightListing:
    """The weight files of one revision, as the Hub lists them.

    Attributes
    ----------
    commit : str
        What the revision resolves to; empty if it is missing.
    files : mapping of str to WeightFile
        The weights that would be downloaded, without the index of shards.
    other_format : mapping of str to WeightFile
        The same weights in the format that would not be, where the revision has both: revisions are
        the same if they agree in any format.
    problem : str
        Why these files cannot be used, in the words of a verdict; empty if they can.
    """

    commit: str = ""
    files: Mapping[str, WeightFile] = field(default_factory=dict)
    other_format: Mapping[str, WeightFile] = field(default_factory=dict)
    problem: str = ""

    def signatures(self) -> list[tuple[str, ...]]:
        """Tell what weights these are, once per format: the sorted hashes of its files.

        Two revisions hold the same weights if they have a signature in common. A format with a file whose
        hash is not known has none.
        """
        formats = (self.files, self.other_format)
        hashes = [tuple(sorted(file.hash for file in each.values())) for each in formats]
        return [each for each in hashes if each and all(map(is_known, each))]

    def same_weights(self, other: "WeightListing") -> bool:
        """Whether both have a format in common whose files are equal one by one."""
        return not set(self.signatures()).isdisjoint(other.signatures())

    def shards(self) -> dict[str, str]:
        """Hashes of the shards in any format, as far as they are known; none where all is one file.

        Their names are without the number of shards, which says nothing of one of them.
        """
        return {
            re.sub(r"-of-\d+", "", name): file.hash
            for files in (self.files, self.other_format)
            if len(files) > 1
            for name, file in files.items()
            if is_known(file.hash)
        }


def is_known(digest: str) -> bool:
    """Whether a hash has digits; ``git:`` alone says nothing and equals nothing."""
    return bool(digest.rpartition(":")[2])

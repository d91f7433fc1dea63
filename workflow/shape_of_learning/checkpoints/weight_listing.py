"""What is known of a revision before any of its weights is downloaded."""

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

    def same_weights(self, other: "WeightListing") -> bool:
        """Whether both have a format in common whose files are equal one by one."""
        return any(
            mine and _hashes(mine) == _hashes(theirs)
            for mine in (self.files, self.other_format)
            for theirs in (other.files, other.other_format)
        )

    def shares_a_shard(self, other: "WeightListing") -> bool:
        """Whether any single file of the weights is the same."""
        return bool(set(_hashes(self.files)) & set(_hashes(other.files)))


def _hashes(files: Mapping[str, WeightFile]) -> list[str]:
    return sorted(file.hash for file in files.values())

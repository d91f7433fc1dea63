"""What the words of figures are until the registry holds them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasureWords:
    """How figures call a measure."""

    name: str
    label: str
    axis: str
    depends_on_n: bool
    description: str = ""


MEASURES = {
    each.name: each
    for each in (
        MeasureWords(
            "anisotropy",
            "Anisotropy",
            "Anisotropy",
            False,
            "anisotropy is the largest squared singular value of the centred vectors over the sum of all",
        ),
        MeasureWords("anisotropy_uncentered", "Anisotropy, not centred", "Anisotropy", False),
        MeasureWords("average_cosine", "Average cosine", "Average cosine", False),
        MeasureWords("average_cosine_centered", "Average cosine, centred", "Average cosine", False),
        MeasureWords("two_nn", "TwoNN", "Intrinsic dimension", True),
        MeasureWords("two_nn_authors", "TwoNN (lowest 20 %)", "Intrinsic dimension", True),
        MeasureWords("mada", "MADA", "Intrinsic dimension", True),
        MeasureWords("mom", "MOM", "Intrinsic dimension", True),
        MeasureWords("mle", "MLE", "Intrinsic dimension", True),
    )
}

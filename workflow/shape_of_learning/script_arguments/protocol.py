"""The protocol by which windows of text are run through a model."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class SamplingProtocol:
    """All that hidden states depend on besides the text and the checkpoint.

    Attributes
    ----------
    windows : int
        Windows of text, drawn without replacement.
    window_characters : int
        Length of each.
    seed : int
        Decides which, and which tokens an encoder has to predict.
    precision : str
        ``"float32"``, ``"bfloat16"`` or ``"float16"``, of weights and activations in the forward pass.
    last_layer : str
        ``"after_final_norm"``: the last hidden state as transformers returns it, which for most decoders is
        after the final normalisation. ``"before_final_norm"``: the output of the last block.
        ``"both"``: the former as the last layer, and the latter beside it.
    """

    windows: int
    window_characters: int
    seed: int
    precision: str = "float32"
    last_layer: str = "after_final_norm"

    def to_json(self) -> str:
        """Return it as the argument of a script."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "SamplingProtocol":
        """Read what :meth:`to_json` wrote."""
        return cls(**json.loads(text))

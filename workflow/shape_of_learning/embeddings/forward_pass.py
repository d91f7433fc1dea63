"""The hidden states of all layers of a checkpoint, and what its head predicts from the last one."""

import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.embeddings.cross_entropy import PredictedTokens, negative_log_likelihood
from shape_of_learning.embeddings.loading import load_model
from shape_of_learning.embeddings.tokenisation import TokenisedWindow
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch
    from transformers.utils import ModelOutput

# What the normalisation after the last block is called: GPT-NeoX and OPT, GPT-2 and kin, Llama and kin.
FINAL_NORMS = ("final_layer_norm", "ln_f", "norm")


class ForwardPass:
    """A checkpoint in evaluation mode.

    Parameters
    ----------
    folder : Path
        Checkpoint in Hugging Face format. Code in it is never run.
    role : {"decoder", "encoder"}
        Which head belongs to it, if any: one for the next token, or one for masked tokens.
    precision : str
        ``"float32"``, ``"bfloat16"`` or ``"float16"``, of weights and activations.
    last_layer : str
        ``"after_final_norm"``: the last hidden state as the library returns it, which for most
        decoders is after the final normalisation. ``"before_final_norm"``: the output of the last
        block; the same where there is no such normalisation. The head gets the former either way.

    Attributes
    ----------
    head : LanguageModelHead or None
        None if the checkpoint has none.
    """

    def __init__(self, folder: Path, *, role: str, precision: str, last_layer: str):
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        # TF32 keeps 10 bits of mantissa, too few for distances between neighbours.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        # One thread per batch: sums are then formed in the same order whatever the number of cores.
        torch.set_num_threads(1)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model, self.head = load_model(
            folder, role=role, precision=precision, device=self.device
        )
        self.model.config.use_cache = False
        self.config = self.model.config
        self._block_output = threading.local()
        # Without a final norm the last hidden state is before it already.
        self._before_final_norm = last_layer == "before_final_norm" and self._has_final_norm()
        if self._before_final_norm:
            self._last_block().register_forward_hook(self._keep_block_output)

    def context(self) -> int | None:
        """Return the most tokens that the model was made for; None if it does not say."""
        positions = getattr(self.config, "max_position_embeddings", None)
        if positions is not None and "roberta" in self.config.model_type:
            positions -= self.config.pad_token_id + 1  # it counts from the padding index on
        return positions

    def hidden_states(
        self,
        batch: list[TokenisedWindow],
        padding: int,
        predicted: list[PredictedTokens] | None = None,
    ) -> tuple[list[list[np.ndarray]], list[float]]:
        """Run one batch of windows, padded on the right and masked.

        Parameters
        ----------
        batch : list of TokenisedWindow
            Windows.
        padding : int
            Token that fills up short windows. RoBERTa derives positions from it, so it must be the
            tokenizer's own where there is one.
        predicted : list of PredictedTokens, optional
            What the head has to predict in each window. Where it is shown another text than the
            window's, as a masked language model is, the blocks are run once more.

        Returns
        -------
        states : list over layers of list over windows of ndarray of float32, shape (kept, width)
            Hidden states of the windows as they are.
        likelihoods : list of float
            Negative log-likelihood of each window's predicted tokens, in nats; empty without any.
        """
        import torch

        with torch.inference_mode():
            output = self._run([window.ids for window in batch], padding, output_hidden_states=True)
            states = list(output.hidden_states)
            if self._before_final_norm:
                states[-1] = self._block_output.value
            kept = [_kept_rows(state, batch) for state in states]
            if predicted is None:
                return kept, []
            if any(p.shown is not w.ids for p, w in zip(predicted, batch, strict=True)):
                output = self._run([tokens.shown for tokens in predicted], padding)
            return kept, self._likelihoods(output, predicted)

    def _run(self, texts: list[np.ndarray], padding: int, **options: Any) -> "ModelOutput":
        import torch

        length = max(map(len, texts))
        ids = np.full((len(texts), length), padding, dtype=np.int64)
        mask = np.zeros((len(texts), length), dtype=np.int64)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        return self.model(
            input_ids=torch.from_numpy(ids).to(self.device),
            attention_mask=torch.from_numpy(mask).to(self.device),
            **options,
        )

    def _likelihoods(self, output: "ModelOutput", predicted: list[PredictedTokens]) -> list[float]:
        logits = partial(self.head.logits, kind=type(output))
        return [
            negative_log_likelihood(
                logits, state[tokens.positions], tokens.targets, self.head.vocabulary
            )
            for state, tokens in zip(output.last_hidden_state, predicted, strict=True)
        ]

    def _has_final_norm(self) -> bool:
        """Whether a normalisation follows the blocks: its name has no number of a block in it."""
        paths = [name.split(".") for name, _ in self.model.named_modules()]
        return any(path[-1] in FINAL_NORMS and not any(map(str.isdigit, path)) for path in paths)

    def _last_block(self) -> "torch.nn.Module":
        """Find the last transformer block: the end of the list that has one module per layer."""
        import torch

        layers = self.config.num_hidden_layers
        for module in self.model.modules():
            if isinstance(module, torch.nn.ModuleList) and len(module) == layers:
                return module[-1]
        raise InputError(
            f"no list of {layers} blocks was found in a `{self.config.model_type}` model; set "
            "`forward.last_layer` to `after_final_norm` for it"
        )

    def _keep_block_output(self, module: Any, inputs: Any, output: Any) -> None:
        self._block_output.value = output[0] if isinstance(output, tuple) else output


def _kept_rows(state: "torch.Tensor", batch: list[TokenisedWindow]) -> list[np.ndarray]:
    values = state.float().cpu().numpy()  # (windows, length, width)
    return [values[row, : len(window.ids)][window.kept] for row, window in enumerate(batch)]

"""The hidden states of all layers of a checkpoint, and what its head predicts from the last one."""

import gc
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.embeddings.copies import Copies, Copy
from shape_of_learning.embeddings.cross_entropy import PredictedTokens, negative_log_likelihood
from shape_of_learning.embeddings.loading import load_model
from shape_of_learning.embeddings.memory import memory_is_exhausted
from shape_of_learning.embeddings.placement import default_device
from shape_of_learning.embeddings.tokenisation import TokenisedWindow
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput

    from shape_of_learning.embeddings.language_model_head import LanguageModelHead

# What the normalisation after the last block is called: GPT-NeoX and OPT, GPT-2 and kin, Llama and kin.
FINAL_NORMS = ("final_layer_norm", "ln_f", "norm")


@dataclass(frozen=True)
class ComputedWindowBatch:
    """What a window batch gives; on a GPU it may still be on its way.

    Attributes
    ----------
    windows : list of TokenisedWindow
        In the order of the first rows of what follows; further rows fill up.
    states : list of Copy of float32, shape (rows, length, width)
        By layer, embedding output first; at the end that before the final norm, if both are asked for.
    sums : Copy of float64, shape (windows,), or None
        Negative log-likelihood of each window's predicted tokens, in nats.
    """

    windows: list[TokenisedWindow]
    states: list[Copy]
    sums: Copy | None

    def rows(self, layer: int) -> "Iterator[np.ndarray | torch.Tensor]":
        """Wait for a layer; yield the rows of each window, float32 of shape (length, width)."""
        for window, values in zip(self.windows, self.states[layer].values(), strict=False):
            yield values[: len(window.ids)]


class ForwardPass:
    """A checkpoint in evaluation mode.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Base model.
    head : LanguageModelHead or None
        None if the checkpoint has none.
    device : torch.device
        Where the model takes its tokens.
    last_layer : str
        ``"after_final_norm"``: the last hidden state as the library returns it, which for most
        decoders is after the final normalisation. ``"before_final_norm"``: the output of the last
        block; the same where there is no such normalisation. ``"both"``: the former as the last layer, and
        the latter after it. The head gets the former either way.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        head: "LanguageModelHead | None",
        *,
        device: "torch.device",
        last_layer: str,
    ):
        import torch

        _compute_exactly()
        # One thread per window batch: sums are then formed in the same order whatever the number of cores.
        torch.set_num_threads(1)
        self.model, self.head, self.device = model, head, device
        self.config = self.model.config
        # A pass keeps nothing that it is not asked for, whatever the checkpoint's own configuration says.
        self.config.use_cache = False
        self.config.output_hidden_states = self.config.output_attentions = False
        self._copies = Copies()
        self._block_output = threading.local()
        self._last_layer = last_layer
        # Without a final norm the last hidden state is before it already.
        self.has_final_norm = self.final_norm() is not None
        self._keeps_block_output = self.has_final_norm and last_layer != "after_final_norm"
        if self._keeps_block_output:
            blocks = self.blocks("set `forward.last_layer` to `after_final_norm` for it")
            blocks[-1].register_forward_hook(self._keep_block_output)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        role: str,
        precision: str,
        last_layer: str,
        device: "torch.device | None" = None,
        beside: int = 0,
    ) -> "ForwardPass":
        """Load a checkpoint; parameters are those of :func:`.load_model`, and `last_layer` as above.

        Without a `device` it is the first GPU, or the CPU where there is none.
        """
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        device = device or default_device()
        model, head, device = load_model(
            folder, role=role, precision=precision, device=device, beside=beside
        )
        return cls(model, head, device=device, last_layer=last_layer)

    def context(self) -> int | None:
        """Return the most tokens that the model was made for; None if it does not say."""
        positions = getattr(self.config, "max_position_embeddings", None)
        if positions is not None and "roberta" in self.config.model_type:
            positions -= self.config.pad_token_id + 1  # it counts from the padding index on
        return positions

    def vocabulary(self) -> int | None:
        """Return how many tokens have an embedding; None if the model does not say."""
        rows = getattr(self.model.get_input_embeddings(), "weight", None)
        return None if rows is None else len(rows)

    def device_name(self) -> str:
        """Name the hardware, since rounding depends on it."""
        import torch

        gpu = self.device.type == "cuda"
        return torch.cuda.get_device_name(self.device) if gpu else "cpu"

    def free_memory(self) -> int:
        """Return the bytes that are free on the GPU; on the fullest one, if there are several."""
        import torch

        gpus = {weight.device for weight in self.model.parameters() if weight.device.type == "cuda"}
        return min(torch.cuda.mem_get_info(gpu)[0] for gpu in gpus | {self.device})

    def release_memory(self) -> None:
        """Give back what a window batch that failed has left behind."""
        import torch

        self._block_output.value = None
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def hidden_states(
        self,
        windows: list[TokenisedWindow],
        padding: int,
        predicted: list[PredictedTokens] | None = None,
        shape: tuple[int, int] | None = None,
        destination: "str | torch.device" = "cpu",
    ) -> ComputedWindowBatch:
        """Run one window batch, padded on the right and masked.

        Parameters
        ----------
        windows : list of TokenisedWindow
            The windows.
        padding : int
            Token that fills up short windows. RoBERTa derives positions from it, so it must be the
            tokenizer's own where there is one.
        predicted : list of PredictedTokens, optional
            What the head has to predict in each window. Where it is shown another text than the
            window's, as a masked language model is, the blocks are run once more.
        shape : tuple of int, optional
            Rows and length of what the model sees; see :class:`WindowBatch`. By default just enough.
        destination : str or torch.device
            Where the hidden states go.

        Returns
        -------
        ComputedWindowBatch
            On a GPU it may not be computed yet, so that the caller can queue the next one.
        """
        import torch

        copy = partial(self._copies.start, destination=torch.device(destination))
        with torch.inference_mode():
            texts = [window.ids for window in windows]
            segments = self._segments(windows)
            output = self.run(texts, padding, shape, segments=segments, output_hidden_states=True)
            kind, last = type(output), output.last_hidden_state
            states = list(output.hidden_states)
            before_final_norm = states[-1]
            if self._keeps_block_output:
                before_final_norm = self._block_output.value
                self._block_output.value = None
            if self._last_layer == "before_final_norm":
                states[-1] = before_final_norm
            elif self._last_layer == "both":
                states.append(before_final_norm)
            del output, before_final_norm
            # Each leaves the model and is forgotten here, so that the next ones get its memory.
            copies = [copy(states.pop(0), torch.float32) for _ in range(len(states))]
            if predicted is None:
                return ComputedWindowBatch(windows, copies, None)
            if any(p.shown is not w.ids for p, w in zip(predicted, windows, strict=True)):
                shown = [tokens.shown for tokens in predicted]
                last = self.run(shown, padding, shape).last_hidden_state
            likelihoods = self._likelihoods(last, kind, predicted)
            likelihoods = self._copies.start(likelihoods, torch.float64, torch.device("cpu"))
            return ComputedWindowBatch(windows, copies, likelihoods)

    def run(
        self,
        texts: list[np.ndarray],
        padding: int,
        shape: tuple[int, int] | None = None,
        segments: list[np.ndarray] | None = None,
        **options: Any,
    ) -> "ModelOutput":
        """Run the base model on texts, each an array of tokens; of pairs of them with their segments."""
        import torch

        rows, length = shape or (len(texts), max(map(len, texts)))
        ids = np.full((rows, length), padding, dtype=np.int64)
        mask = np.zeros((rows, length), dtype=np.int64)
        for row in range(rows):
            text = texts[min(row, len(texts) - 1)]
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        if segments is not None:
            kinds = np.zeros((rows, length), dtype=np.int64)
            for row in range(rows):
                own = segments[min(row, len(segments) - 1)]
                kinds[row, : len(own)] = own
            options["token_type_ids"] = torch.from_numpy(kinds).to(self.device, non_blocking=True)
        try:
            return self.model(
                input_ids=torch.from_numpy(ids).to(self.device, non_blocking=True),
                attention_mask=torch.from_numpy(mask).to(self.device, non_blocking=True),
                **options,
            )
        except Exception as error:  # whatever an architecture's code makes of a config.json
            if memory_is_exhausted(error):
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            raise InputError(
                f"the model does not run ({reason}); correct its config.json, which does not describe a "
                "model of this architecture, or remove it from key `models`"
            ) from error

    def _segments(self, windows: list[TokenisedWindow]) -> list[np.ndarray] | None:
        """Segments of pairs of texts; None for single texts, and where the model has but one segment."""
        segments = [window.segments for window in windows if window.segments is not None]
        return segments if segments and getattr(self.config, "type_vocab_size", 0) > 1 else None

    def _likelihoods(
        self, last: "torch.Tensor", kind: type, predicted: list[PredictedTokens]
    ) -> "torch.Tensor":
        import torch

        assert self.head is not None  # else nothing is predicted
        head = self.head
        logits = partial(head.logits, kind=kind)
        return torch.stack(
            [
                negative_log_likelihood(
                    logits,
                    state[torch.from_numpy(tokens.positions).to(state.device, non_blocking=True)],
                    tokens.targets,
                    head.vocabulary,
                )
                for state, tokens in zip(last, predicted, strict=False)  # the rest fills up
            ]
        )

    def final_norm(self) -> "torch.nn.Module | None":
        """Find the normalisation that follows the blocks: its name has no number of a block in it."""
        for name, module in self.model.named_modules():
            path = name.split(".")
            if path[-1] in FINAL_NORMS and not any(map(str.isdigit, path)):
                return module
        return None

    def blocks(self, remedy: str) -> "torch.nn.ModuleList":
        """Find the transformer blocks: the list that has one module per layer.

        Raises
        ------
        InputError
            That ends with `remedy`, if there is none, as in ALBERT, whose layers share one block.
        """
        import torch

        layers = self.config.num_hidden_layers
        for module in self.model.modules():
            if isinstance(module, torch.nn.ModuleList) and len(module) == layers:
                return module
        raise InputError(
            f"no list of {layers} blocks was found in a `{self.config.model_type}` model; {remedy}"
        )

    def _keep_block_output(self, module: Any, inputs: Any, output: Any) -> None:
        self._block_output.value = output[0] if isinstance(output, tuple) else output


def _compute_exactly() -> None:
    """Let no GPU round more than the numbers' own type does."""
    import torch

    # TF32 keeps 10 bits of mantissa, too few for distances between neighbours.
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    # Sums of 16-bit products are formed in float32 to the end, also where they are split.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

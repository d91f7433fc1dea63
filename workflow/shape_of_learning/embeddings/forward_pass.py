"""The hidden states of all layers of a checkpoint, what its head makes of the last one, and its matrices."""

import threading
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.embeddings.hooks import hooked
from shape_of_learning.embeddings.model import LanguageModelHead, memory_is_exhausted
from shape_of_learning.embeddings.tokenised_windows import PredictedTokens, TokenisedWindow
from shape_of_learning.errors import InputError, shortened

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput


class ForwardPass:
    """A checkpoint in evaluation mode.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Base model.
    head : LanguageModelHead or None
        None if the checkpoint has none.
    last_layer : str
        ``"after_final_norm"``: the last hidden state as the library returns it, which for most
        decoders is after the final normalisation. ``"before_final_norm"``: what that normalisation is
        given; the same where there is none. ``"both"``: the former as the last layer, and
        the latter after it. The head gets the former either way.
    """

    def __init__(
        self, model: "PreTrainedModel", head: LanguageModelHead | None, *, last_layer: str
    ):
        import torch

        _compute_exactly()
        # One thread per window batch: sums are then formed in the same order whatever the number of cores.
        torch.set_num_threads(1)
        self.model, self.head, self.device = model, head, model.device
        self.config = self.model.config
        # A pass keeps nothing that it is not asked for, whatever the checkpoint's own configuration says.
        self.config.use_cache = False
        self.config.output_hidden_states = self.config.output_attentions = False
        self._last_layer = last_layer
        self._before_final_norm = threading.local()
        if last_layer != "after_final_norm" and self.final_norm is not None:
            self.final_norm.register_forward_pre_hook(self._keep)

    def _keep(self, module: Any, given: tuple) -> None:
        self._before_final_norm.state = given[0]

    @cached_property
    def final_norm(self) -> "torch.nn.Module | None":
        """The normalisation that follows the blocks; None where the last block gives the last hidden state.

        Architectures call it by many names, so it is found by what it does. One token is run, and the last
        hidden state followed back through the modules outside of lists of blocks: past a projection (as in
        OPT), to the first module that changes it without a matrix.
        """
        import torch

        calls: list[tuple[torch.nn.Module, torch.Tensor, torch.Tensor]] = []

        def note(module: Any, given: tuple, options: dict, returned: Any) -> None:
            if given and isinstance(given[0], torch.Tensor) and isinstance(returned, torch.Tensor):
                calls.append((module, given[0], returned))

        outside = [
            module
            for name, module in self.model.named_modules()
            if not any(map(str.isdigit, name.split("."))) and not list(module.children())
        ]
        with hooked(outside, note):
            state = self.run([np.zeros(1, dtype=np.int64)], 0).last_hidden_state
        for module, given, returned in reversed(calls):
            # Dropout gives back what it is given.
            if _are_one(returned, state) and not _are_one(given, returned):
                if all(weight.ndim == 1 for weight in module.parameters()):
                    return module
                state = given
        return None

    def context(self) -> int | None:
        """Return the most tokens that the model was made for; None if it does not say."""
        positions = getattr(self.config, "max_position_embeddings", None)
        if positions is not None and "roberta" in self.config.model_type:
            positions -= self.config.pad_token_id + 1  # it counts from the padding index on
        return positions

    def refuse_unsuitable(self, windows: list[TokenisedWindow], name: str) -> None:
        """Raise InputError if windows are too long, or have tokens without an embedding."""
        longest, context = max(len(window.ids) for window in windows), self.context()
        if context is not None and longest > context:
            raise InputError(
                f"a window has {longest} tokens, but the model in {name} was made for {context}; "
                "lower `sampling.window_characters`, or of a task leave out texts that are longer"
            )
        highest = max(window.ids.max() for window in windows)
        embeddings = getattr(self.model.get_input_embeddings(), "weight", None)
        if embeddings is not None and highest >= len(embeddings):
            raise InputError(
                f"the tokenizer in {name} gives token {highest}, but the model there has embeddings "
                f"for {len(embeddings)} tokens; put its own tokenizer into the folder, or for a `repository` "
                "name the one that has it under `tokenizer` in the entry"
            )

    def device_name(self) -> str:
        """Name the hardware, since rounding depends on it."""
        import torch

        gpu = self.device.type == "cuda"
        return torch.cuda.get_device_name(self.device) if gpu else "cpu"

    def hidden_states(
        self,
        windows: list[TokenisedWindow],
        padding: int,
        predicted: list[PredictedTokens] | None = None,
        shape: tuple[int, int] | None = None,
        destination: "str | torch.device" = "cpu",
    ) -> "tuple[list[torch.Tensor], torch.Tensor | None]":
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
            Rows and length of what the model sees; see :class:`.WindowBatch`. By default just enough.
        destination : str or torch.device
            Where the hidden states go.

        Returns
        -------
        states : list of tensor of float32, shape (rows, length, width)
            By layer, embedding output first; at the end that before the final norm, if both are asked for.
            The first rows are those of the windows, in their order; further ones fill up.
        sums : tensor of float64, shape (windows,), or None
            Negative log-likelihood of each window's predicted tokens, in nats.
        """
        import torch

        # Not inference mode: what a model keeps of a pass must be of use in a training that goes on.
        with torch.no_grad():
            texts = [window.ids for window in windows]
            segments = [window.segments for window in windows if window.segments is not None]
            output = self.run(texts, padding, shape, segments, output_hidden_states=True)
            kind, last = type(output), output.last_hidden_state
            states = list(output.hidden_states)
            # Without a final norm the last hidden state is before it already.
            before_final_norm = vars(self._before_final_norm).pop("state", last)
            if self._last_layer == "before_final_norm":
                states[-1] = before_final_norm
            elif self._last_layer == "both":
                states.append(before_final_norm)
            del output, before_final_norm
            # Where gradients are checkpointed, the embedding's output wants one also here.
            states = [state.detach() for state in states]
            # Each leaves the model and is forgotten here, so that the next ones get its memory.
            moved = [states.pop(0).to(destination, torch.float32) for _ in range(len(states))]
            if predicted is None:
                return moved, None
            if any(p.shown is not w.ids for p, w in zip(predicted, windows, strict=True)):
                shown = [tokens.shown for tokens in predicted]
                last = self.run(shown, padding, shape).last_hidden_state
                vars(self._before_final_norm).clear()
            assert self.head is not None  # else nothing is predicted
            return moved, self.head.negative_log_likelihoods(last, predicted, kind).cpu()

    def run(
        self,
        texts: list[np.ndarray],
        padding: int,
        shape: tuple[int, int] | None = None,
        segments: Sequence[np.ndarray] = (),
        **options: Any,
    ) -> "ModelOutput":
        """Run the base model on texts, each an array of tokens; of pairs of them with their segments."""
        shape = shape or (len(texts), max(map(len, texts)))
        if segments and getattr(self.config, "type_vocab_size", 0) > 1:  # it tells them apart
            options["token_type_ids"] = self._filled(segments, shape, 0)
        try:
            return self.model(
                input_ids=self._filled(texts, shape, padding),
                attention_mask=self._filled([np.ones_like(text) for text in texts], shape, 0),
                **options,
            )
        except Exception as error:  # whatever an architecture's code makes of a config.json
            if memory_is_exhausted(error):
                raise
            raise InputError(
                f"the model does not run ({shortened(error)}); correct its config.json, which does not "
                "describe a model of this architecture, or remove it from key `models`"
            ) from error

    def _filled(
        self, rows: Sequence[np.ndarray], shape: tuple[int, int], padding: int
    ) -> "torch.Tensor":
        """Send rows to the device, filled up on the right, and below by repeating the last one."""
        import torch

        filled = np.full(shape, padding, dtype=np.int64)
        for number in range(shape[0]):
            row = rows[min(number, len(rows) - 1)]
            filled[number, : len(row)] = row
        return torch.from_numpy(filled).to(self.device, non_blocking=True)

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


def _are_one(first: "torch.Tensor", second: "torch.Tensor") -> bool:
    """Whether two tensors are the same numbers in the same place of memory."""
    return first.data_ptr() == second.data_ptr() and first.shape == second.shape


# Whose products of float32 may be rounded: TF32 keeps 10 bits of mantissa, too few for distances between neighbours.
ROUNDING = ("", "cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn", "mkldnn.matmul")


def rounding_of(path: str) -> Any:
    """The part of ``torch.backends`` that has an attribute ``fp32_precision``."""
    import torch

    return reduce(getattr, path.split(".") if path else [], torch.backends)


def _compute_exactly() -> None:
    """Let no GPU round more than the numbers' own type does."""
    import torch

    for path in ROUNDING:
        rounding_of(path).fp32_precision = "ieee"
    # Sums of 16-bit products are formed in float32 to the end, also where they are split.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

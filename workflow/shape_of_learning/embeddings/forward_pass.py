"""The hidden states of all layers of a checkpoint, what its head makes of the last one, and its matrices."""

import inspect
import logging
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.embeddings.hooks import (
    Blocks,
    are_equal,
    find_blocks,
    find_returned_state,
    find_state_argument,
    hook_modules,
)
from shape_of_learning.embeddings.model import LanguageModelHead, is_memory_exhausted
from shape_of_learning.embeddings.tokenised_windows import PredictedTokens, TokenisedWindow
from shape_of_learning.errors import InputError, shorten_error

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput

logger = logging.getLogger(__name__)

# What models of images, sounds or both are given.
OTHER_INPUTS = ("pixel_values", "input_features", "input_values")


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
        self.config.return_dict = True
        self._last_layer = last_layer
        self._lock, self._recording = threading.RLock(), 0
        self._needs_windows_alone: bool | None = None
        self._recorded = threading.local()
        self._hooks = ExitStack()

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
        with hook_modules(outside, note):
            state = self.run([np.zeros(1, dtype=np.int64)], 0).get("last_hidden_state")
        for module, given, returned in reversed(calls):
            # Dropout gives back what it is given.
            if state is not None and _are_one(returned, state) and not _are_one(given, returned):
                if all(weight.ndim == 1 for weight in module.parameters()):
                    return module
                state = given
        return None

    def context(self) -> int | None:
        """Return the most tokens that the model was made for; None if it does not say."""
        stated = getattr(self.config, "max_position_embeddings", None)
        limits = [self._count_positions]
        if isinstance(stated, int) and stated > 0:  # XLNet states -1
            limits.append(stated)
        return min((limit for limit in limits if limit is not None), default=None)

    @cached_property
    def _count_positions(self) -> int | None:
        """How many tokens the table of positions has rows for; None if there is no table.

        RoBERTa and its kind count positions from the padding index on, so the rows before have no token. A table is
        found by what it is asked for: the tokens of a text that is one token again and again have consecutive rows.
        """
        import torch

        rows: list[int] = []

        def note(module: Any, given: tuple, options: dict, returned: Any) -> None:
            numbers = next((x for x in (*given, *options.values()) if _are_numbers(x, 4)), None)
            if numbers is not None and (numbers.flatten().diff() == 1).all():
                rows.append(len(module.weight) - int(numbers.min()))

        tables = [
            module
            for module in self.model.modules()
            if isinstance(getattr(module, "weight", None), torch.Tensor) and module.weight.ndim == 2
        ]
        embeddings = self._embeddings
        token = 1 if embeddings is None else len(embeddings) // 2
        with (
            torch.no_grad(),
            hook_modules(tables, note),
            suppress(InputError),
        ):  # too short for CANINE
            self.run([np.full(4, token)], 0)
        return min(rows, default=None)

    @property
    def _embeddings(self) -> "torch.Tensor | None":
        """The matrix of the tokens' embeddings; None where there is none, as in CANINE."""
        with suppress(NotImplementedError):
            return getattr(self.model.get_input_embeddings(), "weight", None)
        return None

    def needs_windows_alone(self, windows: list[TokenisedWindow], padding: int) -> bool:
        """Try whether padding or other windows of a batch change a window's hidden states.

        They do in architectures that have no mask (FNet), or whose convolutions or approximations look beyond it.
        The longest and the shortest window, or half of it if all have the same length, are run alone and
        together, once for each model. What differs by more than half of the digits of the model's precision is no
        rounding: most architectures differ by less than 1e-5 in float32, FNet by .1 and more.

        Raises
        ------
        InputError
            If a window has other hidden states when it is run again.
        """
        with self._lock:
            if self._needs_windows_alone is None:
                self._needs_windows_alone = self._differ_together(windows, padding)
        return self._needs_windows_alone

    def _differ_together(self, windows: list[TokenisedWindow], padding: int) -> bool:
        import torch

        long = max(windows, key=lambda window: len(window.ids))
        short = min(windows, key=lambda window: len(window.ids))
        if len(short.ids) == len(long.ids):
            short = _cut_in_half(long)
        once, other, again = (
            self.compute_hidden_states([w], padding)[0] for w in (long, short, long)
        )
        rounding = torch.finfo(self.model.dtype).eps ** 0.5
        if (change := _measure_largest_change(again, once)) > rounding:
            raise InputError(
                f"the architecture `{self.config.model_type}` cannot be measured: it gives the same text other "
                f"hidden states when it is run again (by {change:.2g} of their length), since it draws random "
                "numbers or adapts to the texts before; choose another model, or settings of it that leave nothing "
                "to chance"
            )
        try:
            together = self.compute_hidden_states([long, short], padding)[0]
        except Exception as error:
            if not is_memory_exhausted(error):
                raise
            return True  # there is no room for two
        pairs = (
            (once, [state[:1] for state in together]),
            (other, [state[1:] for state in together]),
        )
        change = max(_measure_largest_change(joint, alone) for alone, joint in pairs)
        if change > rounding:
            logger.info(
                "windows are run one by one, since together they have other hidden states (by %.2g of their length)",
                change,
            )
        return change > rounding

    def refuse_unsuitable(self, windows: list[TokenisedWindow], name: str) -> None:
        """Raise InputError if windows are too long, or have tokens without an embedding."""
        longest, context = max(len(window.ids) for window in windows), self.context()
        if context is not None and longest > context:
            raise InputError(
                f"a window has {longest} tokens, but the model in {name} was made for {context}; "
                "lower `sampling.window_characters`, or of a task leave out texts that are longer"
            )
        highest = max(window.ids.max() for window in windows)
        embeddings = self._embeddings
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

    def compute_hidden_states(
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
            shape = shape or (len(windows), max(len(window.ids) for window in windows))
            texts = [window.ids for window in windows]
            segments = [window.segments for window in windows if window.segments is not None]
            states, last, kind = self._compute_states(texts, padding, shape, segments)
            # Where gradients are checkpointed, the embedding's output wants one also here.
            states = [state.detach() for state in states]
            # Each leaves the model and is forgotten here, so that the next ones get its memory.
            moved = [states.pop(0).to(destination, torch.float32) for _ in range(len(states))]
            if predicted is None:
                return moved, None
            if any(p.shown is not w.ids for p, w in zip(predicted, windows, strict=True)):
                shown = [tokens.shown for tokens in predicted]
                last = self.run(shown, padding, shape).last_hidden_state
            assert self.head is not None  # else nothing is predicted
            return moved, self.head.sum_negative_log_likelihoods(last, predicted, kind).cpu()

    def _compute_states(
        self,
        texts: list[np.ndarray],
        padding: int,
        shape: tuple[int, int],
        segments: Sequence[np.ndarray],
    ) -> "tuple[list[torch.Tensor], torch.Tensor, type]":
        """Run texts; all hidden states, the last one after the final norm, and the class of the output."""
        blocks = self._find_deciding_blocks(texts[0], padding)
        recorded = vars(self._recorded)
        with self._record_states(blocks):
            # A pass that failed may have left some, and one without a record: hooks are of all threads.
            recorded.clear()
            output = self.run(texts, padding, shape, segments, output_hidden_states=blocks is None)
        if blocks is None:
            states = list(output.hidden_states)
        else:
            states = recorded.pop("states")
            if blocks.are_time_first:
                states = [state.transpose(0, 1) for state in states]
        last = _find_last_state(output, states)
        # Without a final norm the last hidden state is before it already.
        before_final_norm = recorded.pop("before_final_norm", last)
        recorded.clear()
        states[-1] = last if self._last_layer != "before_final_norm" else before_final_norm
        if self._last_layer == "both":
            states.append(before_final_norm)
        for number, state in enumerate(states):
            if state.ndim != 3 or state.shape[:2] != shape:
                raise InputError(
                    f"the architecture `{self.config.model_type}` cannot be measured: its hidden state {number} has "
                    f"the shape {tuple(state.shape)} for {shape[0]} x {shape[1]} tokens, not one vector for each; "
                    "choose another model"
                )
        return states, last, type(output)

    def _find_deciding_blocks(self, text: np.ndarray, padding: int) -> Blocks | None:
        """Find the blocks where hidden states must be recorded; None if the library returns what they do.

        The library's list begins after the first block in some architectures (Mamba, RWKV), or ends
        otherwise. A text is run once, and what the library returns compared with what blocks do.
        """
        with self._lock:
            if not hasattr(self, "_decided"):
                self._decided = self._compare_blocks_with_library(text, padding)
        return self._decided

    def _compare_blocks_with_library(self, text: np.ndarray, padding: int) -> Blocks | None:
        outputs: list[Any] = []

        def run() -> None:
            outputs.append(self.run([text], padding, output_hidden_states=True))

        layers = self._stated_layers
        blocks = find_blocks(self.model, run, len(text), layers)
        library = list(outputs[0].get("hidden_states") or [])
        if blocks is None:
            if not library:
                raise InputError(
                    f"the architecture `{self.config.model_type}` cannot be measured: it returns no hidden states, "
                    "and no chain of blocks was found in it; choose another model"
                )
            return None
        inner = blocks.states[:-1]
        if len(library) == len(inner) + 1 and all(map(are_equal, inner, library)):
            return None
        shared = sum(any(are_equal(state, other) for other in library) for state in inner)
        has_more = len(library) > len(inner) + 2 and shared == len(inner)
        if library and (has_more or (len(blocks.calls) != layers and 2 * shared < len(inner))):
            return None
        return blocks

    @property
    def _stated_layers(self) -> int:
        """How many layers the configuration states; 0 if it does not."""
        layers = getattr(self.config.get_text_config(), "num_hidden_layers", 0)
        return layers if isinstance(layers, int) else 0

    @contextmanager
    def _record_states(self, blocks: Blocks | None) -> Iterator[None]:
        """Record what is needed of the modules' own states inside, by hooks that all threads share."""
        norm = self.final_norm if self._last_layer != "after_final_norm" else None
        if blocks is None and norm is None:
            yield
            return
        with self._lock:
            self._recording += 1
            if self._recording == 1:
                if blocks is not None:
                    self._hooks.enter_context(hook_modules(set(blocks.modules), self._keep_state))
                if norm is not None:
                    self._hooks.enter_context(hook_modules([norm], self._keep_before_final_norm))
        try:
            yield
        finally:
            with self._lock:
                self._recording -= 1
                if not self._recording:
                    self._hooks.close()

    def _keep_state(self, block: Any, args: tuple, options: dict, output: Any) -> None:
        states = vars(self._recorded).setdefault("states", [])
        # What the model changes in place afterwards is no output of the block.
        if not states:
            states.append(find_state_argument(args, options).clone())
        states.append(find_returned_state(output).clone())

    def _keep_before_final_norm(self, module: Any, args: tuple, options: dict, output: Any) -> None:
        self._recorded.before_final_norm = find_state_argument(args, options)

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
            options["token_type_ids"] = self._fill_rows(segments, shape, 0)
        try:
            output = self.model(
                input_ids=self._fill_rows(texts, shape, padding),
                attention_mask=self._fill_rows([np.ones_like(text) for text in texts], shape, 0),
                **options,
            )
        except Exception as error:  # whatever an architecture's code makes of a config.json
            if is_memory_exhausted(error):
                raise
            taken = inspect.signature(self.model.forward).parameters
            if other := next((name for name in OTHER_INPUTS if name in taken), ""):
                raise InputError(
                    f"the architecture `{self.config.model_type}` does not run on text alone ({shorten_error(error)}), "
                    f"since it takes `{other}`; choose a model of text, or the part of this one that is"
                ) from error
            raise InputError(
                f"the model does not run ({shorten_error(error)}); correct its config.json, which does not "
                "describe a model of this architecture, or remove it from key `models`"
            ) from error
        if not hasattr(output, "get"):
            raise InputError(
                f"the architecture `{self.config.model_type}` cannot be measured: it does not return hidden states by "
                "name; choose another model"
            )
        return output

    def _fill_rows(
        self, rows: Sequence[np.ndarray], shape: tuple[int, int], padding: int
    ) -> "torch.Tensor":
        """Send rows to the device, filled up on the right, and below by repeating the last one."""
        import torch

        filled = np.full(shape, padding, dtype=np.int64)
        for number in range(shape[0]):
            row = rows[min(number, len(rows) - 1)]
            filled[number, : len(row)] = row
        return torch.from_numpy(filled).to(self.device, non_blocking=True)

    def find_blocks(self, remedy: str) -> "torch.nn.ModuleList":
        """Find the transformer blocks: the list of modules that hidden states pass one after the other.

        Raises
        ------
        InputError
            That ends with `remedy`, if there is none, as in ALBERT, whose layers share one block.
        """
        import torch

        tokens = np.arange(2)
        with torch.no_grad():
            blocks = find_blocks(
                self.model, lambda: self.run([tokens], 0), len(tokens), self._stated_layers
            )
        if blocks is None or len(blocks.calls) != len(blocks.modules):
            raise InputError(
                f"no list of blocks was found in a `{self.config.model_type}` model; {remedy}"
            )
        return blocks.modules


def _cut_in_half(window: TokenisedWindow) -> TokenisedWindow:
    """Cut a window, which keeps one token at least."""
    half = max(1, len(window.ids) // 2)
    segments = None if window.segments is None else window.segments[:half]
    return TokenisedWindow(window.ids[:half], window.special[:half], segments)


def _measure_largest_change(states: "list[torch.Tensor]", others: "list[torch.Tensor]") -> float:
    """The largest distance of a token's hidden state from another one, by the length of that.

    Of states of one window each, the tokens that both have. What is finite in one of them alone is infinitely far.
    """
    changes = [0.0]
    for state, other in zip(states, others, strict=True):
        tokens = min(state.shape[1], other.shape[1])
        one, two = state[0, :tokens].double(), other[0, :tokens].double()
        if not (one.isfinite() == two.isfinite()).all():
            return math.inf
        one, two = (values.nan_to_num(0, 0, 0) for values in (one, two))
        distances = (one - two).norm(dim=-1)
        lengths = two.norm(dim=-1)
        moved = distances > 0
        changes += (distances[moved] / lengths[moved]).tolist()
    return max(changes)


def _find_last_state(output: "ModelOutput", states: "list[torch.Tensor]") -> "torch.Tensor":
    """The last hidden state of a model; where its output has none, as in DPR, the last one by layer."""
    last = output.get("last_hidden_state")
    return states[-1] if last is None else last


def _are_numbers(value: Any, count: int) -> bool:
    """Whether a value is a tensor of so many whole numbers, one for each token."""
    import torch

    return (
        isinstance(value, torch.Tensor)
        and value.numel() == value.shape[-1:].numel() == count
        and not (value.is_floating_point() or value.is_complex())
    )


def _are_one(first: "torch.Tensor", second: "torch.Tensor") -> bool:
    """Whether two tensors are the same numbers in the same place of memory."""
    return first.data_ptr() == second.data_ptr() and first.shape == second.shape


# Whose products of float32 may be rounded: TF32 keeps 10 bits of mantissa, too few for distances between neighbours.
ROUNDING = ("", "cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn", "mkldnn.matmul")


def find_rounding_settings(path: str) -> Any:
    """The part of ``torch.backends`` that has an attribute ``fp32_precision``."""
    import torch

    return reduce(getattr, path.split(".") if path else [], torch.backends)


def _compute_exactly() -> None:
    """Let no GPU round more than the numbers' own type does."""
    import torch

    for path in ROUNDING:
        find_rounding_settings(path).fp32_precision = "ieee"
    # Sums of 16-bit products are formed in float32 to the end, also where they are split.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

"""Compute the hidden states of all layers of a checkpoint, and the likelihoods of its head."""

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
    copy_structure,
    find_blocks,
    find_returned_state,
    find_state_argument,
    hook_modules,
    restore_structure,
)
from shape_of_learning.embeddings.model import LanguageModelHead, is_memory_exhausted
from shape_of_learning.embeddings.tokenised_windows import PredictedTokens, TokenisedWindow
from shape_of_learning.errors import InputError, shorten_error

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput

logger = logging.getLogger(__name__)

# Arguments of models of images and sounds.
OTHER_INPUTS = ("pixel_values", "input_features", "input_values")


class ForwardPass:
    """A checkpoint in evaluation mode.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Base model.
    head : LanguageModelHead or None
    last_layer : str
        ``"after_final_norm"``: the last hidden state as the library returns it, for most decoders after the final
        normalisation. ``"before_final_norm"``: the input of that normalisation, or without one the same state.
        ``"both"``: the state after the norm as the last layer, then the state before it. The head always gets the
        state after the norm.

    Attributes
    ----------
    changes_itself : bool
        Whether a pass leaves something in the model, such as the last states of RecurrentGemma, so that two threads
        would mix their states. :meth:`needs_windows_alone` finds it out.
    has_last_state : bool
        Whether the latest pass returned a last hidden state. If it did not, the output of the last block takes its
        place.
    """

    def __init__(
        self, model: "PreTrainedModel", head: LanguageModelHead | None, *, last_layer: str
    ):
        import torch

        _compute_exactly()
        # One thread per window batch, so that the order of sums does not depend on the number of cores.
        torch.set_num_threads(1)
        self.model, self.head, self.device = model, head, model.device
        # If accelerate keeps the first weights on disk, it moves the inputs itself.
        if self.device.type == "meta":
            self.device = torch.device("cpu")
        self.config = self.model.config
        # The checkpoint's configuration may ask for outputs that no measure needs.
        self.config.use_cache = False
        self.config.output_hidden_states = self.config.output_attentions = False
        self.config.return_dict = True
        self._last_layer = last_layer
        self._lock, self._recording = threading.RLock(), 0
        self._needs_windows_alone: bool | None = None
        self.changes_itself, self.has_last_state = False, True
        self._records = threading.local()
        self._hooks = ExitStack()

    @cached_property
    def final_norm(self) -> "torch.nn.Module | None":
        """The normalisation after the blocks; None if the last block returns the last hidden state.

        Architectures use many names for it, so we find it by its effect: we run one token, and follow the last hidden
        state back through the modules outside of lists of blocks, past a projection (as in OPT), to the first module
        that changes it without a matrix.
        """
        import torch

        calls: list[tuple[torch.nn.Module, torch.Tensor, torch.Tensor]] = []

        def note(module: Any, args: tuple, options: dict, output: Any) -> None:
            if args and isinstance(args[0], torch.Tensor) and isinstance(output, torch.Tensor):
                calls.append((module, args[0], output))

        outer_modules = [
            module
            for name, module in self.model.named_modules()
            if not any(map(str.isdigit, name.split("."))) and not list(module.children())
        ]
        with hook_modules(outer_modules, note):
            state = self.run([np.zeros(1, dtype=np.int64)], 0).get("last_hidden_state")
        for module, argument, output in reversed(calls):
            # Dropout returns its argument.
            if (
                state is not None
                and _share_memory(output, state)
                and not _share_memory(argument, output)
            ):
                if all(weight.ndim == 1 for weight in module.parameters()):
                    return module
                state = argument
        return None

    def find_context(self) -> int | None:
        """Find the largest number of tokens that the model takes; None if it has no limit."""
        stated_limit = getattr(self.config, "max_position_embeddings", None)
        limits = [self._position_count]
        if isinstance(stated_limit, int) and stated_limit > 0:  # XLNet states -1
            limits.append(stated_limit)
        return min((limit for limit in limits if limit is not None), default=None)

    @cached_property
    def _position_count(self) -> int | None:
        """The number of tokens for which the table of positions has rows; None if there is no table.

        RoBERTa and its relatives count positions from the padding index on, so earlier rows have no token. We find the
        table by its argument: in a text that repeats one token, only positions are consecutive numbers.
        """
        import torch

        rows: list[int] = []

        def note(module: Any, args: tuple, options: dict, output: Any) -> None:
            for argument in (*args, *options.values()):
                if _are_positions(argument, 4):
                    rows.append(len(module.weight) - int(argument.flatten()[0]))

        tables = [
            module
            for module in self.model.modules()
            if isinstance(getattr(module, "weight", None), torch.Tensor) and module.weight.ndim == 2
        ]
        embeddings = self._embeddings
        token = 1 if embeddings is None else len(embeddings) // 2
        # CANINE raises an error for so short a text.
        with torch.no_grad(), hook_modules(tables, note), suppress(InputError):
            self.run([np.full(4, token)], 0)
        return min(rows, default=None)

    @property
    def _embeddings(self) -> "torch.Tensor | None":
        """The matrix of the tokens' embeddings; None if the model has none, as CANINE."""
        with suppress(NotImplementedError):
            return getattr(self.model.get_input_embeddings(), "weight", None)
        return None

    def choose_padding(self, tokenizer: Any) -> int:
        """Return the token that pads windows: the tokenizer's padding, or 0 if the model has no embedding for it.

        Users often add a padding token to a tokenizer and not to its model. Padding is masked,
        so token 0 can replace it.
        """
        padding, embeddings = tokenizer.pad_token_id or 0, self._embeddings
        return padding if embeddings is None or padding < len(embeddings) else 0

    def needs_windows_alone(self, windows: list[TokenisedWindow], padding: int) -> bool:
        """Return whether padding or other windows of a batch change a window's hidden states.

        They do in architectures without a mask (FNet), or with convolutions or approximations that ignore it. Once per
        model, the longest and the shortest window are run alone and together. If all windows have the same length, half
        of one is the shortest. A difference beyond half of the digits of the model's precision is no rounding: most
        architectures differ by less than 1e-5 in float32, FNet by .1 or more.

        Raises
        ------
        InputError
            If the same window has other hidden states in a second run.
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
        long_states = self.compute_hidden_states([long], padding)[0]
        earlier_contents = _list_contents(self.model)
        short_states = self.compute_hidden_states([short], padding)[0]
        if not _are_same(earlier_contents, _list_contents(self.model)):
            self.changes_itself = True
        repeated_states = self.compute_hidden_states([long], padding)[0]
        rounding = torch.finfo(self.model.dtype).eps ** 0.5
        if (change := _measure_largest_change(repeated_states, long_states)) > rounding:
            raise InputError(
                f"the architecture `{self.config.model_type}` cannot be measured: it gives the same text other "
                f"hidden states when it is run again (by {change:.2g} of their length), since it draws random "
                "numbers or adapts to earlier texts; choose another model, or settings of it without random numbers"
            )
        try:
            joint_states = self.compute_hidden_states([long, short], padding)[0]
        except Exception as error:
            if not is_memory_exhausted(error):
                raise
            return True  # memory has no room for two windows
        change = max(
            _measure_largest_change([state[:1] for state in joint_states], long_states),
            _measure_largest_change([state[1:] for state in joint_states], short_states),
        )
        if change > rounding:
            logger.info(
                "windows are run one by one, since a batch changes their hidden states (by %.2g of their length)",
                change,
            )
        return change > rounding

    def refuse_unsuitable(self, windows: list[TokenisedWindow], name: str) -> None:
        """Raise InputError if windows are too long, or have tokens without an embedding."""
        longest, context = max(len(window.ids) for window in windows), self.find_context()
        if context is not None and longest > context:
            raise InputError(
                f"a window has {longest} tokens, but the model in {name} was made for {context}",
                "lower `sampling.window_characters`, or of a task leave out texts that are longer",
                "give shorter `texts`, or `window_tokens`, by which they are split",
            )
        highest = max(window.ids.max() for window in windows)
        embeddings = self._embeddings
        if embeddings is not None and highest >= len(embeddings):
            raise InputError(
                f"the tokenizer in {name} gives token {highest}, but the model there has embeddings "
                f"for {len(embeddings)} tokens",
                "put its own tokenizer into the folder, or for a `repository` name the one that has it under "
                "`tokenizer` in the entry",
                "give the model's own `tokenizer`",
            )

    def find_device_name(self) -> str:
        """Return the name of the hardware, since rounding depends on it."""
        import torch

        gpu = self.device.type == "cuda"
        return torch.cuda.get_device_name(self.device) if gpu else "cpu"

    def compute_hidden_states(
        self,
        windows: list[TokenisedWindow],
        padding: int,
        predicted_tokens: list[PredictedTokens] | None = None,
        shape: tuple[int, int] | None = None,
        destination: "str | torch.device" = "cpu",
    ) -> "tuple[list[torch.Tensor], torch.Tensor | None]":
        """Run one window batch, padded on the right and masked.

        Parameters
        ----------
        windows : list of TokenisedWindow
            The windows.
        padding : int
            Token that pads short windows. RoBERTa derives positions from it, so it must be the tokenizer's padding
            token, if there is one.
        predicted_tokens : list of PredictedTokens, optional
            Tokens that the head predicts in each window. If their input is not the window, as in a masked language
            model, the blocks run once more.
        shape : tuple of int, optional
            Rows and length of the input; see :class:`.WindowBatch`. By default the number and length of the windows.
        destination : str or torch.device
            Device of the returned hidden states.

        Returns
        -------
        states : list of tensor of float32, shape (rows, length, width)
            By layer, embedding output first; with ``"both"``, the state before the final norm comes last. The first
            rows are the windows; further rows are padding.
        sums : tensor of float64, shape (windows,), or None
            Negative log-likelihood of each window's predicted tokens, in nats.
        """
        import torch

        # Inference mode would leave caches in a model that a training cannot use afterwards.
        with torch.no_grad():
            shape = shape or (len(windows), max(len(window.ids) for window in windows))
            texts = [window.ids for window in windows]
            segments = [window.segments for window in windows if window.segments is not None]
            states, last, kind = self._compute_states(texts, padding, shape, segments)
            # With gradient checkpointing, the embedding's output requires a gradient even here.
            states = [state.detach() for state in states]
            # Each state is freed as it is copied, so that the next copy gets its memory.
            copies = [states.pop(0).to(destination, torch.float32) for _ in range(len(states))]
            if predicted_tokens is None:
                return copies, None
            inputs = [tokens.input_ids for tokens in predicted_tokens]
            if any(ids is not text for ids, text in zip(inputs, texts, strict=True)):
                last = self.run(inputs, padding, shape).last_hidden_state
            assert self.head is not None  # without a head there are no predicted tokens
            return copies, self.head.sum_negative_log_likelihoods(
                last, predicted_tokens, kind
            ).cpu()

    def _compute_states(
        self,
        texts: list[np.ndarray],
        padding: int,
        shape: tuple[int, int],
        segments: Sequence[np.ndarray],
    ) -> "tuple[list[torch.Tensor], torch.Tensor, type]":
        """Run texts; return all hidden states, the state after the final norm, and the class of the model's output."""
        blocks = self._find_recorded_blocks(texts[0], padding)
        records = vars(self._records)
        with self._record_states(blocks):
            # A failed pass may have left records.
            records.clear()
            output = self.run(texts, padding, shape, segments, output_hidden_states=blocks is None)
        if blocks is None:
            states = list(output.hidden_states)
        else:
            states = records.pop("states")
            if blocks.are_time_first:
                states = [state.transpose(0, 1) for state in states]
        last = output.get("last_hidden_state")
        self.has_last_state = last is not None
        if last is None:  # as in DPR
            last = states[-1]
        tokens = shape[1]
        is_padded = states[0].shape[1] != tokens == last.shape[1]
        if is_padded and are_equal(last, states[-1][:, :tokens]):
            # BigBird pads a text to whole blocks, and cuts the padding off its last hidden state only.
            states = [state[:, :tokens] for state in states]
        # Without a final norm, both are the last hidden state.
        state_before_norm = records.pop("before_final_norm", last)
        records.clear()
        states[-1] = last if self._last_layer != "before_final_norm" else state_before_norm
        if self._last_layer == "both":
            states.append(state_before_norm)
        for number, state in enumerate(states):
            if state.ndim != 3 or state.shape[:2] != shape:
                raise InputError(
                    f"the architecture `{self.config.model_type}` cannot be measured: its hidden state {number} has "
                    f"the shape {tuple(state.shape)} for {shape[0]} x {shape[1]} tokens, not one vector for each; "
                    "choose another model"
                )
        return states, last, type(output)

    def _find_recorded_blocks(self, text: np.ndarray, padding: int) -> Blocks | None:
        """Find the blocks whose hidden states must be recorded; None if the library returns the same states.

        In some architectures (Mamba, RWKV) the library's list begins after the first block, or ends elsewhere. So we
        run a text once, and compare the library's states with the states of the blocks.
        """
        with self._lock:
            if not hasattr(self, "_recorded_blocks"):
                self._recorded_blocks = self._compare_blocks_with_library(text, padding)
        return self._recorded_blocks

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
        block_states = blocks.states[:-1]
        number = len(block_states)
        if len(library) == number + 1 and all(map(are_equal, block_states, library)):
            return None
        shared_states = sum(
            any(are_equal(state, entry) for entry in library) for state in block_states
        )
        has_more = len(library) > number + 2 and shared_states == number
        if library and (has_more or (len(blocks.calls) != layers and 2 * shared_states < number)):
            return None
        return blocks

    @property
    def _stated_layers(self) -> int:
        """The number of layers in the configuration; 0 if it states no number."""
        layers = getattr(self.config.get_text_config(), "num_hidden_layers", 0)
        return layers if isinstance(layers, int) else 0

    @contextmanager
    def _record_states(self, blocks: Blocks | None) -> Iterator[None]:
        """Record hidden states of modules in the block, by hooks that all threads share."""
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
        states = vars(self._records).setdefault("states", [])
        # The model may change a state in place afterwards.
        if not states:
            states.append(find_state_argument(args, options).clone())
        states.append(find_returned_state(output).clone())

    def _keep_before_final_norm(self, module: Any, args: tuple, options: dict, output: Any) -> None:
        self._records.before_final_norm = find_state_argument(args, options)

    def run(
        self,
        texts: list[np.ndarray],
        padding: int,
        shape: tuple[int, int] | None = None,
        segments: Sequence[np.ndarray] = (),
        **options: Any,
    ) -> "ModelOutput":
        """Run the base model on texts, which are arrays of tokens; pairs of texts also have segments."""
        shape = shape or (len(texts), max(map(len, texts)))
        if segments and getattr(self.config, "type_vocab_size", 0) > 1:  # it distinguishes segments
            options["token_type_ids"] = self._fill_rows(segments, shape, 0)
        structure = copy_structure(self.model)  # in each run, since blocks may have been edited
        try:
            output = self.model(
                input_ids=self._fill_rows(texts, shape, padding),
                attention_mask=self._fill_rows([np.ones_like(text) for text in texts], shape, 0),
                **options,
            )
        except Exception as error:  # code of architectures raises any exception
            if is_memory_exhausted(error):
                raise
            parameters = inspect.signature(self.model.forward).parameters
            if name := next((name for name in OTHER_INPUTS if name in parameters), ""):
                raise InputError(
                    f"the architecture `{self.config.model_type}` does not run on text alone ({shorten_error(error)}), "
                    f"since it takes `{name}`; choose a model of text, or the text model in this one"
                ) from error
            half = texts[0][: len(texts[0]) // 2]
            if self._runs_on(half):
                raise InputError(
                    f"the model runs on {len(half)} tokens, but not on {len(texts[0])} ({shorten_error(error)})",
                    "lower `sampling.window_characters`",
                    "give shorter `texts`, or `window_tokens`, by which they are split",
                ) from error
            raise InputError(
                f"the model does not run ({shorten_error(error)})",
                "correct its config.json, which does not describe a model of this architecture, or remove it from key "
                "`models`",
                "give the `tokenizer` of the model, and a `model` that runs on `tokenizer(texts[0])`",
            ) from error
        finally:
            if restore_structure(structure):
                self.changes_itself = True
        if not hasattr(output, "get"):
            raise InputError(
                f"the architecture `{self.config.model_type}` cannot be measured: it does not return hidden states by "
                "name; choose another model"
            )
        return output

    def _runs_on(self, text: np.ndarray) -> bool:
        """Return whether the base model runs on a text."""
        tokens = self._fill_rows([text], (1, len(text)), 0)
        with suppress(Exception):  # code of architectures raises any exception
            return self.model(input_ids=tokens, attention_mask=(tokens >= 0).long()) is not None
        return False

    def _fill_rows(
        self, rows: Sequence[np.ndarray], shape: tuple[int, int], padding: int
    ) -> "torch.Tensor":
        """Send rows to the device, padded on the right; further rows repeat the last one."""
        import torch

        array = np.full(shape, padding, dtype=np.int64)
        for number in range(shape[0]):
            row = rows[min(number, len(rows) - 1)]
            array[number, : len(row)] = row
        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def find_blocks(self, remedy: str) -> "torch.nn.ModuleList":
        """Find the transformer blocks: the list of modules through which hidden states pass one after the other.

        Raises
        ------
        InputError
            If the model has no such list, as in ALBERT, whose layers share one block; the message ends with `remedy`.
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


def _list_contents(model: "PreTrainedModel") -> list[tuple[Any, int]]:
    """List what the modules of a model hold, each with the number of times that a tensor was changed in place."""
    import torch

    contents = []
    for module in model.modules():
        for value in (*vars(module).values(), *module._buffers.values()):
            is_counted = isinstance(value, torch.Tensor) and not value.is_inference()
            contents.append((value, value._version if is_counted else 0))
    return contents


def _are_same(first: list[tuple[Any, int]], second: list[tuple[Any, int]]) -> bool:
    """Return whether two lists of contents hold the same objects, or equal numbers and names."""
    plain = (bool, int, float, str)
    return len(first) == len(second) and all(
        changes == more_changes and (value is other or (type(value) in plain and value == other))
        for (value, changes), (other, more_changes) in zip(first, second, strict=True)
    )


def _cut_in_half(window: TokenisedWindow) -> TokenisedWindow:
    """Cut a window in half, but keep one token."""
    half = max(1, len(window.ids) // 2)
    segments = None if window.segments is None else window.segments[:half]
    return TokenisedWindow(window.ids[:half], window.special[:half], segments)


def _measure_largest_change(
    states: "list[torch.Tensor]", reference_states: "list[torch.Tensor]"
) -> float:
    """Return the largest distance of a token's hidden state from its reference, relative to the reference's length.

    Both lists are of one window; tokens that only one of them has are left out. The distance is infinite if only one
    of the states is finite.
    """
    changes = [0.0]
    for state, reference in zip(states, reference_states, strict=True):
        tokens = min(state.shape[1], reference.shape[1])
        vectors, references = state[0, :tokens].double(), reference[0, :tokens].double()
        if not (vectors.isfinite() == references.isfinite()).all():
            return math.inf
        vectors, references = (values.nan_to_num(0, 0, 0) for values in (vectors, references))
        distances = (vectors - references).norm(dim=-1)
        differs = distances > 0
        changes += (distances[differs] / references.norm(dim=-1)[differs]).tolist()
    return max(changes)


def _are_positions(value: Any, count: int) -> bool:
    """Return whether a value is a row of `count` consecutive integers, and more only for equal padding.

    Longformer pads each text to whole windows of its attention.
    """
    import torch

    if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.is_complex():
        return False
    row = value.flatten()
    padding = row[count:]
    return (
        value.shape[-1:].numel() == len(row) >= count
        and bool((row[:count].diff() == 1).all())
        and bool((padding == padding[:1]).all())
    )


def _share_memory(first: "torch.Tensor", second: "torch.Tensor") -> bool:
    """Return whether two tensors share their memory."""
    return first.data_ptr() == second.data_ptr() and first.shape == second.shape


# Backends that may round products of float32, by TF32 to 10 bits of mantissa: too few for distances of neighbours.
ROUNDING = ("", "cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn", "mkldnn.matmul")


def find_rounding_settings(path: str) -> Any:
    """Return the part of ``torch.backends`` at this path, which has the attribute ``fp32_precision``."""
    import torch

    return reduce(getattr, path.split(".") if path else [], torch.backends)


def _compute_exactly() -> None:
    """Forbid GPUs to round more than the type of the numbers does."""
    import torch

    for path in ROUNDING:
        find_rounding_settings(path).fp32_precision = "ieee"
    # A split sum of 16-bit products keeps its parts in float32.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

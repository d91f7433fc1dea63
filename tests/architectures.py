"""Build a small random model of any type of the installed transformers, and measure it.

No type is named here: the numbers of a configuration are made small by their names, which many types share.
"""

import inspect
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers as hf

from shape_of_learning.checkpoints.shapes import parse_shape
from shape_of_learning.embeddings.forward_pass import ForwardPass
from shape_of_learning.embeddings.run import SampleRun
from shape_of_learning.embeddings.tokenised_windows import TokenisedWindow
from shape_of_learning.errors import InputError

LAYERS, WIDTH, HEADS, VOCABULARY, POSITIONS, MOST_WEIGHTS = 4, 64, 4, 300, 512, 6_000_000
HEAD = WIDTH // HEADS
# Sizes by pattern of the name of a number; the first pattern that fits decides.
SIZES = {
    r".*vocab_size.*|.*_vocab|ngram_vocab_size_base": VOCABULARY,
    r"(num|n)_(hidden_|encoder_|decoder_)?(layers?|blocks?)|(encoder|decoder)_layers|L_layers": LAYERS,
    r"num_(dense|shared|kv_shared|add|conv)_layers|first_k_dense_replace|moe_layer_start_index": 1,
    r".*(key_value|kv|query)_(heads|groups)|n_head_kv|num_key_value_groups": 2,
    r"(mamba|ssm)_d_head|mamba_head_?dim|linear_.*head_dim": HEAD,
    r"mamba_(n|num)_heads|n_mamba_heads": 2 * HEADS,
    r".*(lora_)?rank|.*lowrank": HEAD,
    r".*head_?dim|.*head_size|d_kv|kv_channels|d_head|dim_head|d_rel|.*qk_.*dim|v_head_dim|rotary_dim": HEAD,
    r".*heads?|num_head": HEADS,
    r"hidden_size|d_model|n_embd|(word_)?emb(edding|ed)?_(size|dim|proj_dim)|dim|n_embed|.*embedding_size|embed_dim"
    r"|dim_model|lru_width|.*embed_proj_dim|pooler_hidden_size|router_hidden_size|ple_embed_dim": WIDTH,
    r".*(intermediate|ffn|feed_forward|inner|hidden_dim|mlp|moe_hidden).*|d_?ff|dim_ff|n_inner|mamba_d_ssm"
    r"|attention_hidden_size": 2 * WIDTH,
    r".*d_?state|.*state_size": 8,
    r".*groups?": 1,
    r"index_top_?k.*": 64,
    r".*(per_tok(en)?|top_?k|moe_k).*|num_selected_experts": 2,
    r"(n|num|moe).*experts?|.*expert_num": 4,
    r".*(max_position|n_positions|max_seq|seq_length).*|n_ctx|context_length": POSITIONS,
    r".*(window|chunk).*|block_size": 32,
    r".*_(id|index)": 1,
}  # fmt: skip
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
# Fields that some types need, tried in this order; a type gets the fields that it has.
AMENDMENTS: list[dict[str, Any]] = [
    {},
    {"num_key_value_heads": HEADS},
    {"num_key_value_heads": HEADS, "qk_nope_head_dim": HEAD, "qk_rope_head_dim": HEAD, "qk_head_dim": 2 * HEAD},
    {"num_key_value_heads": HEADS, "head_dim": HEAD, "qk_rope_head_dim": HEAD},
    {"num_key_value_heads": HEADS, "num_experts_per_tok": 2, "n_routed_experts": 4},
    {"num_experts_per_tok": 2, "n_routed_experts": 4, "n_group": 1, "topk_group": 1},
    {"head_dim": HEAD},
    {"rope_parameters": {**ROPE, "mrope_section": [HEAD // 4, HEAD // 8, HEAD // 8]}},
    {"rope_parameters": {**ROPE, "mrope_section": [HEAD // 8, HEAD // 16, HEAD // 16], "partial_rotary_factor": 0.5}},
    {"rope_parameters": {**ROPE, "mrope_section": [HEAD // 4, HEAD // 8, HEAD // 8]}, "head_dim": HEAD},
    {"vocab_size": VOCABULARY, "pad_token_id": 1, "mask_token_id": 2},
    {"default_language": "en_XX"},
    {"axial_pos_embds": False},
    {"num_heads": 2 * HEADS, "head_dim": HEAD},
    {"mamba_d_ssm": 2 * WIDTH, "mamba_n_heads": 2 * HEADS, "mamba_d_head": HEAD},
    {"true_hidden_size": WIDTH, "intra_bottleneck_size": WIDTH},
]  # fmt: skip


def find_text_types(names: Iterable[str]) -> Iterator[tuple[str, Any, Any]]:
    """Yield each type whose base model reads text alone, with its classes of configuration and model.

    A model of several modalities is measured by its text part, which has its own type.
    """
    for name in names:
        try:
            kind = hf.CONFIG_MAPPING[name]
            model = hf.MODEL_MAPPING[kind]
            model = model[0] if isinstance(model, tuple) else model
            reads_text = "input_ids" in inspect.signature(model.forward).parameters
        except (KeyError, ValueError, ImportError):
            continue  # a part of another model, or of a package that is not installed
        modalities = model.input_modalities
        is_of_text = {"text"} == ({modalities} if isinstance(modalities, str) else set(modalities))
        if reads_text and (is_of_text or not kind.sub_configs):
            yield name, kind, model


def shrink(values: dict[str, Any]) -> dict[str, Any]:
    """Make the numbers of a configuration small, and shorten its lists to the new number of layers."""
    keys = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
    counts = [values[key] for key in keys if values.get(key)]
    small: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, bool) or value is None or value in (0, -1):
            continue
        if isinstance(value, int):
            size = next((n for pattern, n in SIZES.items() if re.fullmatch(pattern, key)), value)
            small[key] = min(size, value) if value > 0 else value
        elif isinstance(value, list) and counts and len(value) == counts[0]:
            small[key] = choose_layers(value)
        elif isinstance(value, dict) and key.endswith("config") and value:
            small[key] = shrink(value)
    return small


def choose_layers(values: list[Any]) -> list[Any]:
    """Choose one entry for each layer, so that every kind occurs if there is room."""
    if not isinstance(values[0], str):
        return [min(n, 4 * WIDTH) if isinstance(n, int) else n for n in values[:LAYERS]]
    kinds = list(dict.fromkeys(values))
    return [kinds[number % len(kinds)] for number in range(LAYERS)]


def build(kind: Any, model: Any) -> Any:
    """Build a small random model that runs; raise ValueError with the reason if no size works."""
    values, reasons = kind().to_dict(), []
    small, amendments = shrink(values), []
    for amendment in AMENDMENTS:
        more = {key: value for key, value in amendment.items() if key in values}
        if more in amendments:
            continue
        amendments.append(more)
        try:
            config = kind(**small | more)
            with torch.device("meta"):
                weights = sum(weight.numel() for weight in model(config).parameters())
            if weights > MOST_WEIGHTS:
                raise ValueError(f"it has {weights:,} weights")
            torch.manual_seed(0)
            base = stir(model(config).eval().requires_grad_(False))
            run_alone(base, np.arange(5, 25))
            return base
        except Exception as error:  # types refuse sizes with errors of many classes
            reasons.append(" ".join(f"{error}".split()) or type(error).__name__)
    raise ValueError(reasons[0])


def stir(model: Any) -> Any:
    """Move the weights away from their initial values, so that every norm and bias has an effect."""
    for name, weight in model.named_parameters():
        if weight.ndim == 1:
            weight.add_(torch.randn_like(weight) / 5)
        elif "A_log" not in name:  # rates of decay must stay small
            weight.mul_(1.5)
    return model


def draw_windows(base: Any) -> list[TokenisedWindow]:
    """Draw windows of several lengths from the vocabulary of a model, the shortest in the middle."""
    random = np.random.default_rng(0)
    end = (
        min(VOCABULARY, getattr(base.config.get_text_config(), "vocab_size", None) or VOCABULARY)
        - 5
    )
    texts = [random.integers(5, end, size) for size in (40, 33, 17, 40, 29)]
    return [TokenisedWindow(ids, np.zeros(len(ids), bool)) for ids in texts]


class StateArrays:
    """A store of hidden states as arrays."""

    device = "cpu"

    def __init__(self, sample: SampleRun):
        self.states = [
            np.full((sample.tokens, width), np.nan, np.float32) for width in sample.widths
        ]

    def write(self, state: int, rows: slice, values: Any) -> None:
        """Store the values of some rows of a state."""
        self.states[state][rows] = values


class Outcome(NamedTuple):
    """The outcome of measuring a type.

    Attributes
    ----------
    word : str
        ``measured``, ``refused`` or ``not tried``.
    remark : str
        How the type is measured, or the reason why it is not.
    error : float
        The largest distance of a measured hidden state from that of each window alone, relative to its length.
    """

    word: str
    remark: str = ""
    error: float = 0.0


TWO_STACKS = "an encoder and a decoder: measure one of them (`model.get_encoder()` in Python)"


def examine(kind: Any, model: Any) -> Outcome:
    """Build a small model of a type, measure it, and compare its states with those of the library and of hooks."""
    if getattr(kind(), "is_encoder_decoder", False):
        return Outcome("refused", TWO_STACKS)
    try:
        base = build(kind, model)
    except ValueError:
        return Outcome("not tried")
    try:
        forward, states = measure_states(base)
    except InputError as refusal:
        start = f"the architecture `{base.config.model_type}` cannot be measured: "
        return Outcome("refused", re.sub(r" \(by .*?\)|;.*", "", str(refusal).removeprefix(start)))
    library, last = run_library_alone(base)
    blocks = run_blocks_alone(base)
    expected = [*(library if blocks is None else blocks)[:-1], last]
    *states, final_input = states
    if len(states) != len(expected):
        return Outcome("measured", "another number of states is expected", np.inf)
    error = max(map(distance, states, expected))
    if blocks is not None and forward.final_norm is not None:
        # The norm gets the output of the last block, or a combination of several outputs.
        with torch.no_grad():
            final_output = forward.final_norm(torch.from_numpy(final_input)).numpy()
        error = max(error, min(distance(final_input, blocks[-1]), distance(final_output, last)))
    shape = parse_shape(base.config.to_dict(), kind.model_type)
    widths = [shape.hidden_size] * shape.layers + [shape.last_hidden_size]
    remarks = [
        "at its blocks, the library's list being another" * (not equals_library(blocks, library)),
        "each window alone" * forward.needs_windows_alone([], 0),
    ]
    if shape.layers and shape.hidden_size and [state.shape[1] for state in states] != widths:
        sizes = f"{len(states)} hidden states, {len(widths)} by its configuration"
        remarks.append(f"in Python alone ({sizes})")
    return Outcome("measured", "; ".join(filter(None, remarks)), error)


def equals_library(blocks: Any, library: list[np.ndarray]) -> bool:
    """Return whether the states of the library are those of the blocks, except for the last one."""
    if blocks is None:
        return True
    same = map(np.array_equal, library[:-1], blocks[:-1])
    return len(library) == len(blocks) and all(same)


def distance(states: np.ndarray, expected: np.ndarray) -> float:
    """Return the distance of two matrices relative to the length of the second."""
    if states.shape != expected.shape:
        return np.inf
    return float(np.linalg.norm(states - expected) / np.linalg.norm(expected))


def measure_states(base: Any) -> tuple[ForwardPass, list[np.ndarray]]:
    """Run the windows through a base model as the command, the workflow and Python do; raise InputError if refused."""
    texts = draw_windows(base)
    # The command first runs a window without the state before the final norm.
    ForwardPass(base, None, last_layer="after_final_norm").compute_hidden_states(texts[:1], 0)
    forward = ForwardPass(base, None, last_layer="both")
    forward.refuse_unsuitable(texts, "a folder")
    states, _ = forward.compute_hidden_states(texts[:1], 0)
    widths = [state.shape[-1] for state in states]
    sample = SampleRun(forward, "a folder", texts, None, 0, len(widths) - 2, widths)
    store = StateArrays(sample)
    sample.store_states(store)
    return forward, store.states


def run_library_alone(base: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """Run each window alone and return the hidden states of the library, and the last one."""
    library, last = [], []
    for window in draw_windows(base):
        output = run_alone(base, window.ids)
        library.append([state[0].numpy() for state in output.get("hidden_states") or []])
        state = output.get("last_hidden_state")
        last.append(library[-1][-1] if state is None else state[0].numpy())
    layers = [np.concatenate(states) for states in zip(*library, strict=True)]
    return layers, np.concatenate(last)


def run_alone(base: Any, ids: np.ndarray) -> Any:
    """Run one window, without padding."""
    text = torch.from_numpy(ids)[None]
    mask = torch.ones_like(text)
    with torch.no_grad():
        return base(input_ids=text, attention_mask=mask, output_hidden_states=True, use_cache=False)


def run_blocks_alone(base: Any) -> list[np.ndarray] | None:
    """Run each window alone and record by hooks the input of the first block and the output of each block.

    The blocks are the outermost list with as many modules as the configuration has layers. Return None if there is no
    such list, if its modules are not run once each, or if they get something else than one vector for each token.
    """
    layers = getattr(base.config.get_text_config(), "num_hidden_layers", None)
    lists = [m for m in base.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == layers]
    if not lists:
        return None
    states_by_window: list[list[np.ndarray]] = []
    for window in draw_windows(base):
        calls: list[tuple[Any, Any, Any]] = []

        def note(block: Any, args: Any, options: Any, output: Any, calls: Any = calls) -> None:
            input_states = args[0] if args else options.get("hidden_states")
            calls.append((block, input_states, output[0] if isinstance(output, tuple) else output))

        hooks = [block.register_forward_hook(note, with_kwargs=True) for block in lists[0]]
        run_alone(base, window.ids)
        for hook in hooks:
            hook.remove()
        if [block for block, *_ in calls] != list(lists[0]):
            return None
        states = [calls[0][1], *(output for *_, output in calls)]
        if any(getattr(state, "shape", ())[:2] != (1, len(window.ids)) for state in states):
            return None
        if not any(call[2].equal(following[1]) for call, following in itertools.pairwise(calls)):
            return None
        states_by_window.append([state[0].numpy() for state in states])
    return [np.concatenate(states) for states in zip(*states_by_window, strict=True)]

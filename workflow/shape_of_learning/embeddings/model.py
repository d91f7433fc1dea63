"""Checkpoints loaded without surprises: what they lack is never filled with random numbers."""

import copy
import logging
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.checkpoints.loaded_keys import refuse_other_keys, refuse_too_large
from shape_of_learning.checkpoints.shapes import (
    CONFIGURATION,
    MOST_LAYERS,
    Shape,
    find_model_folder,
    list_class_names,
    parse_shape,
    read_configuration_file,
)
from shape_of_learning.embeddings.tokenised_windows import PredictedTokens
from shape_of_learning.embeddings.variants import apply_adapter, describe_quantisation
from shape_of_learning.errors import InputError, is_memory_exhausted, shorten_error
from shape_of_learning.files import refuse_odd_file
from shape_of_learning.validation import cut

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel

logger = logging.getLogger(__name__)

# Ways to compute attention that run anywhere; None is the one that the library prefers.
OWN_ATTENTION = (None, "eager", "sdpa")
# Labels, experts or heads; layers have a bound of their own.
MOST_COUNTED = 100_000
# Enough for attention to go from the last token to several others.
TRIED_TOKENS = 8
# One block of float32 logits: 66 rows of BLOOM's 250,880, enough to keep a matrix product busy.
LOGITS_BYTES = 1 << 26


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Raise InputError if `what` takes more bytes of the host's memory than Linux says are available."""
    with suppress(OSError):  # other systems do not say
        sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        available = 1024 * int(sizes["MemAvailable"].split()[0])
        if needed > available:
            raise InputError(
                f"{what} take {needed / 1e6:,.0f} MB of memory, but {available / 1e6:,.0f} MB are "
                f"available; {remedy}"
            )


def choose_device() -> "torch.device":
    """Return the first visible GPU, or the CPU where there is none."""
    import torch

    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def find_device(name: str | None) -> "torch.device":
    """Return the device of a name, or the default one; InputError if it is not here."""
    if not name:
        return choose_device()
    import torch

    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:150]
        raise InputError(
            f"device `{name}` cannot be used ({reason}); name another, such as cpu"
        ) from error
    return device


def load_model(
    folder: Path, *, role: str, precision: str, device: "torch.device"
) -> "tuple[PreTrainedModel, LanguageModelHead | None]":
    """Load the base model of a checkpoint and, if it has one, its language-model head.

    Parameters
    ----------
    folder : Path
        Checkpoint in Hugging Face format. Code in it is never run.
    role : {"decoder", "encoder", "encoder-decoder", ""}
        Whether the head predicts the next token or masked ones; without one of these two there is no head.
    precision : str
        Of the weights: ``"float32"``, ``"bfloat16"`` or ``"float16"``.
    device : torch.device
        Where to.

    Returns
    -------
    base : transformers.PreTrainedModel
        In evaluation mode; of an encoder-decoder its encoder.
    head : LanguageModelHead or None
        None, with a line in the log that says why, if the library knows no such head for the
        architecture, the checkpoint lacks weights of it, or the next token is seen before it is predicted.

    Raises
    ------
    InputError
        If the checkpoint cannot be read, lacks weights of the base model (they would be random numbers), or
        is too large for the GPU.
    """
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = read_config(folder)
    own = _find_own_class(config)
    if own is not None and own.__name__.endswith("EncoderModel"):
        return _load(own, folder, config, precision, device)[0], None
    if config.is_encoder_decoder:
        model, _ = _load(own or transformers.AutoModel, folder, config, precision, device)
        return model.get_encoder(), None
    with_head, known = {
        "decoder": (transformers.AutoModelForCausalLM, transformers.MODEL_FOR_CAUSAL_LM_MAPPING),
        "encoder": (transformers.AutoModelForMaskedLM, transformers.MODEL_FOR_MASKED_LM_MAPPING),
    }.get(role, (None, ()))
    # The hidden states are those of AutoModel, so a class must have the same model in it.
    inner = transformers.MODEL_MAPPING.get(type(config), None)
    if type(config) in known:
        model, lacking = _load(with_head, folder, config, precision, device)
        if type(model.base_model) is inner:
            return model.base_model, _find_head(model, role, lacking, folder)
    logger.info("no head for the role `%s` is known for the type `%s`", role, config.model_type)
    for kind in filter(None, (own, transformers.AutoModel)):
        model, _ = _load(kind, folder, config, precision, device)
        if inner is None or type(model.base_model) is inner:
            break
    return model.base_model, None


def _find_own_class(config: "PretrainedConfig") -> Any:
    """Return the library's class that the checkpoint was saved as, None if it has none of this name."""
    import transformers

    for name in list_class_names(vars(config)):
        kind: Any = getattr(transformers, name, None)
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            return kind if getattr(kind, "config_class", None) is type(config) else None
    return None


def _find_head(
    model: "PreTrainedModel", role: str, lacking: list[str], folder: Path
) -> "LanguageModelHead | None":
    """Return the head of a model, None if it lacks weights, or is to predict what its model sees."""
    if lacking:
        logger.info("%s lacks `%s` of its language-model head", folder, lacking[0])
        return None
    if role == "decoder" and sees_later_tokens(model.base_model):
        logger.warning(
            "the model in %s is shown the tokens that it would have to predict, since its attention goes both ways; "
            "it has no loss (in the workflow `role: encoder` in its entry says so)",
            folder,
        )
        return None
    return LanguageModelHead(model)


def sees_later_tokens(model: "PreTrainedModel") -> bool:
    """Whether a token changes the hidden states of those before it, as in an encoder.

    A few tokens are run twice, the second time with another one at the end. What does not run on them is said
    when windows are.
    """
    import torch

    rows = model.config.get_text_config().vocab_size
    tokens = torch.arange(TRIED_TOKENS, device=model.device).repeat(2, 1) % rows
    tokens[1, -1] = (tokens[1, -1] + 1) % rows
    try:
        with torch.no_grad():
            output = model(input_ids=tokens, attention_mask=torch.ones_like(tokens))
        states = output.last_hidden_state[:, :-1].float().nan_to_num()
    except Exception:  # whatever an architecture's code makes of a config.json
        return False
    # Other rows may change how sums are rounded.
    rounding = 64 * torch.finfo(model.dtype).eps * float(states.abs().max())
    return not torch.allclose(states[0], states[1], rtol=0, atol=min(rounding, 0.05))


def read_shape(folder: Path, where: str) -> Shape:
    """Read the shape of the model in a folder; what ``config.json`` leaves out is as the library has it.

    Raises
    ------
    InputError
        If it states what cannot be, or describes no model that the library knows.
    """
    own = parse_shape(read_configuration_file(find_model_folder(folder)), where)
    if own.layers and own.hidden_size:
        return own
    config = read_config(folder)
    text = config.get_text_config(**({"encoder": True} if config.is_encoder_decoder else {}))
    sizes = getattr(text, "num_hidden_layers", 0), getattr(text, "hidden_size", 0)
    layers, width = (size if isinstance(size, int) else 0 for size in sizes)
    return replace(own, layers=layers, hidden_size=width, last_hidden_size=width)


def read_config(folder: Path) -> "PretrainedConfig":
    """Read ``config.json`` as the library does; InputError if it describes no model that it knows."""
    import transformers

    folder = find_model_folder(folder)
    refuse_odd_file(folder / CONFIGURATION)
    _refuse_counts(read_configuration_file(folder), folder / CONFIGURATION)
    config = _read(transformers.AutoConfig, folder)
    _choose_attention(config)
    return config


def _choose_attention(config: "PretrainedConfig") -> None:
    """Let the library choose how attention is computed, unless a configuration names one of its own ways.

    Others need a GPU, half precision or a package, and some are code that the library would fetch from the Hub.
    """
    if config._attn_implementation not in OWN_ATTENTION:
        config._attn_implementation = None
    for part in filter(None, (getattr(config, key, None) for key in config.sub_configs)):
        _choose_attention(part)


def _refuse_counts(config: Mapping[str, Any], path: Path) -> None:
    """Refuse more modules or labels than any model has, with which the library would be busy without end."""
    for key, value in config.items():
        most = MOST_LAYERS if re.search(r"layers?$|depth$|blocks?$", key) else MOST_COUNTED
        is_counted = most == MOST_LAYERS or re.search("(labels|experts|heads|groups|stages)$", key)
        if isinstance(value, dict):
            _refuse_counts(value, path)
        elif is_counted and isinstance(value, int) and value > most:
            raise InputError(
                f"{path} says {value:,} for `{cut(key)}`, more than any model has; correct it, or fetch the file anew"
            )


def _load(
    kind: Any, folder: Path, config: "PretrainedConfig", precision: str, device: "torch.device"
) -> "tuple[PreTrainedModel, list[str]]":
    """Load a model to where it is run; also which weights of its head the files lack.

    All weights that are measured come through here: files that must not be read, and keys of the base model that are
    missing or over, are refused.
    """
    import torch

    from shape_of_learning.checkpoints.tensors import map_tensors

    adapter, folder = folder, find_model_folder(folder)
    if named := getattr(config, "transformers_weights", None):
        raise InputError(
            f"{folder / CONFIGURATION} names other weights by `transformers_weights` ({cut(named)}); remove the key"
        )
    stored = {name: t for of in map_tensors(folder).values() for name, t in of.items()}
    where = f"the checkpoint in {folder}"
    refuse_too_large(kind, config, sum(tensor.numel() for tensor in stored.values()), where)
    model, report = _read(
        kind,
        folder,
        config=config,
        dtype=getattr(torch, precision),
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # so that it says which differ; they are refused
    )
    lacking = refuse_other_keys(model, report, stored, where)
    if adapter != folder:
        apply_adapter(model, adapter)
    try:
        model.to(device)
    except Exception as error:
        if not is_memory_exhausted(error):
            raise
        raise InputError(
            f"the weights in {folder} do not fit on the GPU; set `precision: bfloat16` in the model's entry, "
            "take a larger GPU, or the CPU (`CUDA_VISIBLE_DEVICES=`)"
        ) from error
    return model.eval().requires_grad_(False), lacking


def _read(kind: Any, folder: Path, **options: Any) -> Any:
    """Call ``kind.from_pretrained`` on files alone, and explain what it cannot read."""
    quantised = getattr(options.get("config"), "quantization_config", None)
    try:
        if quantised is not None:
            logger.warning(
                "the weights in %s are quantised (%s)", folder, describe_quantisation(quantised)
            )
        return kind.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True, **options
        )
    except MemoryError:
        raise
    except Exception as error:  # what config.json says goes into the code of all architectures
        if quantised is not None:
            raise InputError(
                f"the weights in {folder} are quantised ({describe_quantisation(quantised)}) and cannot be loaded here "
                f"({shorten_error(error)}); install the package that this names, or take the folder of the full weights"
            ) from error
        raise InputError(
            f"the checkpoint in {folder} cannot be loaded ({shorten_error(error)}); delete a fetched folder to "
            "fetch it anew, mend one of your own"
        ) from error


class LanguageModelHead:
    """All that a language model does between its last hidden states and its logits.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        With its head, such as a ``GPTNeoXForCausalLM`` or a ``BertForMaskedLM``.

    Attributes
    ----------
    model : transformers.PreTrainedModel
        As given.
    vocabulary : int
        Width of the logits.

    Notes
    -----
    The library's own forward pass is run on a base model that gives the rows back. So whatever an
    architecture adds to a linear map (bias, scale, soft cap, one more dense layer) is in it. The
    head looks at each row by itself, hence the rows may come in blocks.
    """

    def __init__(self, model: Any):
        self.model = model
        self.vocabulary: int = model.config.get_text_config().vocab_size

    def compute_logits(self, rows: "torch.Tensor", kind: type) -> "torch.Tensor":
        """Apply the head to last hidden states, shape (n, width); shape (n, vocabulary).

        `kind` is the class of the base model's output, whose fields the head may ask for.
        """
        sequence = rows.unsqueeze(0)
        head = copy.copy(self.model)  # shares its weights; other threads have copies of their own
        # An attribute of the instance hides the module of that name.
        output = kind(last_hidden_state=sequence)
        vars(head)[head.base_model_prefix] = _Returns(output, self.model.base_model)
        return head(inputs_embeds=sequence).logits.squeeze(0)

    def sum_negative_log_likelihoods(
        self, states: "torch.Tensor", predicted: Sequence[PredictedTokens], kind: type
    ) -> "torch.Tensor":
        """Sum the negative log-likelihoods of the predicted tokens of each window.

        Parameters
        ----------
        states : tensor, shape (rows, length, width)
            Last hidden states of the windows, in their order; further rows fill up.
        predicted : sequence of PredictedTokens
            What is to be predicted in each window.
        kind : type
            As in :meth:`compute_logits`, which is given rows in blocks of :data:`LOGITS_BYTES` of logits.

        Returns
        -------
        tensor of float64, shape (windows,)
            In nats. Terms are formed in float32, whatever the precision of the logits, and added in
            float64. Infinity where a term is not finite.
        """
        import torch

        block = max(1, LOGITS_BYTES // (4 * self.vocabulary))
        sums = torch.zeros(len(predicted), dtype=torch.float64, device=states.device)
        for number, tokens in enumerate(predicted):
            rows = states[number, torch.from_numpy(tokens.positions).to(states.device)]
            targets = torch.from_numpy(tokens.targets).to(states.device)
            for part, wanted in zip(rows.split(block), targets.split(block), strict=True):
                scores = self.compute_logits(part, kind).float()
                terms = torch.nn.functional.cross_entropy(scores, wanted, reduction="none")
                sums[number] += terms.double().sum()
        return sums.nan_to_num(nan=math.inf, posinf=math.inf, neginf=math.inf)


class _Returns:
    """In the place of a base model: its output, whatever the input; all else is the base model's own.

    Parameters
    ----------
    output : ModelOutput
    base : transformers.PreTrainedModel
        Some heads ask it for numbers or weights, as in Falcon-H1.
    """

    def __init__(self, output: Any, base: Any):
        self._output, self._base = output, base

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._output

    def __getattr__(self, name: str) -> Any:
        from transformers import PreTrainedModel

        value = getattr(self._base, name)
        # What OPT calls is not its base model but the decoder in it.
        return self if isinstance(value, PreTrainedModel) else value

"""Load checkpoints and their language-model heads; missing weights are errors and never random numbers."""

import copy
import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shape_of_learning.checkpoints.loaded_keys import refuse_other_keys, refuse_too_large
from shape_of_learning.checkpoints.shapes import (
    ADAPTER_REMEDY,
    CONFIGURATION,
    MOST_LAYERS,
    Shape,
    find_model_folder,
    list_class_names,
    parse_shape,
    read_configuration_file,
)
from shape_of_learning.embeddings.hooks import copy_structure, restore_structure
from shape_of_learning.embeddings.tokenised_windows import PredictedTokens
from shape_of_learning.errors import InputError, is_memory_exhausted, shorten_error
from shape_of_learning.files import refuse_odd_file
from shape_of_learning.validation import cut

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel

logger = logging.getLogger(__name__)

ADAPTER_WEIGHTS = "adapter_model.safetensors"
# Implementations of attention that run anywhere; None is the library's choice.
PORTABLE_ATTENTION = (None, "eager", "sdpa")
MOST_MODULES = 100_000  # labels, experts or heads; layers have another bound
# With so many tokens, attention can go from the last token to several others.
TRIED_TOKENS = 8
# One block of float32 logits: 66 rows for BLOOM's vocabulary of 250,880, enough for a fast matrix product.
LOGITS_BYTES = 1 << 26


def require_memory(size: int, subject: str, remedy: str) -> None:
    """Raise InputError if `subject` takes more bytes than Linux has available."""
    with suppress(OSError):  # other systems have no such file
        sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        available = 1024 * int(sizes["MemAvailable"].split()[0])
        if size > available:
            raise InputError(
                f"{subject} take {size / 1e6:,.0f} MB of memory, but {available / 1e6:,.0f} MB are "
                f"available; {remedy}"
            )


def choose_device() -> "torch.device":
    """Return the first visible GPU, or the CPU if there is none."""
    import torch

    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def find_device(name: str | None) -> "torch.device":
    """Return the device of this name, or without a name the default device; InputError if it cannot be used."""
    if not name:
        return choose_device()
    import torch

    try:
        device = torch.device(name)
        torch.empty(1, device=device).item()
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
        The head of a decoder predicts the next token, the head of an encoder masked tokens; other roles have no head.
    precision : str
        ``"float32"``, ``"bfloat16"`` or ``"float16"``.
    device : torch.device

    Returns
    -------
    base : transformers.PreTrainedModel
        The model in evaluation mode, or the encoder of an encoder-decoder.
    head : LanguageModelHead or None
        None for the encoder of an encoder-decoder; also, with a line in the log, if the library has no head for the
        architecture, if the checkpoint lacks weights of the head, or if the model sees the next token before it
        predicts it.

    Raises
    ------
    InputError
        If the checkpoint cannot be read, lacks weights of the base model (which would be random numbers), or is too
        large for the GPU.
    """
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = read_config(folder)
    saved_class = _find_saved_class(config)
    if saved_class is not None and saved_class.__name__.endswith("EncoderModel"):
        return _load(saved_class, folder, config, precision, device)[0], None
    if config.is_encoder_decoder:
        model, _ = _load(saved_class or transformers.AutoModel, folder, config, precision, device)
        return model.get_encoder(), None
    head_class, head_mapping = {
        "decoder": (transformers.AutoModelForCausalLM, transformers.MODEL_FOR_CAUSAL_LM_MAPPING),
        "encoder": (transformers.AutoModelForMaskedLM, transformers.MODEL_FOR_MASKED_LM_MAPPING),
    }.get(role, (None, ()))
    # The hidden states must be those of AutoModel, so the model with a head must contain the same class.
    base_class = transformers.MODEL_MAPPING.get(type(config), None)
    if type(config) in head_mapping:
        model, missing_keys = _load(head_class, folder, config, precision, device)
        if type(model.base_model) is base_class:
            return model.base_model, _find_head(model, role, missing_keys, folder)
    logger.info("no head for the role `%s` is known for the type `%s`", role, config.model_type)
    for kind in filter(None, (saved_class, transformers.AutoModel)):
        model, _ = _load(kind, folder, config, precision, device)
        if base_class is None or type(model.base_model) is base_class:
            break
    return find_base(model), None


def find_base(model: "PreTrainedModel") -> "PreTrainedModel":
    """Return the model without its heads; in DPR a head contains a model with another head."""
    while model.base_model is not model:
        model = model.base_model
    return model


def _find_saved_class(config: "PretrainedConfig") -> Any:
    """Return the library's class from which the checkpoint was saved; None if the library lacks it."""
    import transformers

    for name in list_class_names(vars(config)):
        kind: Any = getattr(transformers, name, None)
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            return kind if getattr(kind, "config_class", None) is type(config) else None
    return None


def _find_head(
    model: "PreTrainedModel", role: str, missing_keys: list[str], folder: Path
) -> "LanguageModelHead | None":
    """Return the head of a model; None if the head lacks weights, or if the model sees the tokens to predict."""
    if missing_keys:
        logger.info("%s lacks `%s` of its language-model head", folder, missing_keys[0])
        return None
    if role == "decoder" and sees_later_tokens(model.base_model):
        logger.warning(
            "the model in %s sees the tokens that it would predict, since its attention goes both ways, so it has no "
            "loss; in the workflow, write `role: encoder` into its entry",
            folder,
        )
        return None
    return LanguageModelHead(model)


def sees_later_tokens(model: "PreTrainedModel") -> bool:
    """Return whether a token changes the hidden states of earlier tokens, as in an encoder.

    A few tokens are run twice, the second time with another last token. If the model does not run on them, the answer
    is False, since running the windows will raise the error.
    """
    import torch

    rows = model.config.get_text_config().vocab_size
    tokens = torch.arange(TRIED_TOKENS, device=model.device).repeat(2, 1) % rows
    tokens[1, -1] = (tokens[1, -1] + 1) % rows
    structure = copy_structure(model)
    try:
        with torch.no_grad():
            output = model(input_ids=tokens, attention_mask=torch.ones_like(tokens))
        states = output.last_hidden_state[:, :-1].float().nan_to_num()
    except Exception:  # code of architectures raises any exception
        return False
    finally:
        restore_structure(structure)
    # Other rows of a batch may change the rounding of sums.
    rounding = 64 * torch.finfo(model.dtype).eps * float(states.abs().max())
    return not torch.allclose(states[0], states[1], rtol=0, atol=min(rounding, 0.05))


def refuse_two_stacks(shape: Shape, model: str | Path) -> None:
    """Raise InputError for a model with an encoder and a decoder, since the user must choose one of them."""
    if shape.role == "encoder-decoder":
        raise InputError(
            f"{model} has an encoder and a decoder",
            "in Python measure `model.get_encoder()` by `shape_of_learning.measure`, in the workflow add "
            "`role: encoder` to its entry",
            "load it and give one, such as `model.get_encoder()`",
        )


def read_shape(folder: Path, where: str) -> Shape:
    """Read the shape of the model in a folder, with the library's defaults for keys missing in ``config.json``.

    Raises
    ------
    InputError
        If a value is impossible, or the library does not know the model.
    """
    shape = parse_shape(read_configuration_file(find_model_folder(folder)), where)
    if shape.layers and shape.hidden_size:
        return shape
    config = read_config(folder)
    text = config.get_text_config(**({"encoder": True} if config.is_encoder_decoder else {}))
    sizes = getattr(text, "num_hidden_layers", 0), getattr(text, "hidden_size", 0)
    layers, width = (size if isinstance(size, int) else 0 for size in sizes)
    return replace(shape, layers=layers, hidden_size=width, last_hidden_size=width)


def read_config(folder: Path) -> "PretrainedConfig":
    """Read ``config.json`` with the library; InputError if the library does not know the model."""
    import transformers

    folder = find_model_folder(folder)
    refuse_odd_file(folder / CONFIGURATION)
    _refuse_counts(read_configuration_file(folder), folder / CONFIGURATION)
    config = _read(transformers.AutoConfig, folder)
    _choose_attention(config)
    return config


def _choose_attention(config: "PretrainedConfig") -> None:
    """Let the library choose the implementation of attention, unless a configuration names a portable one.

    Other implementations need a GPU, half precision or a package, or are code that the library would fetch from the
    Hub.
    """
    if config._attn_implementation not in PORTABLE_ATTENTION:
        config._attn_implementation = None
    for part in filter(None, (getattr(config, key, None) for key in config.sub_configs)):
        _choose_attention(part)


def _refuse_counts(config: Mapping[str, Any], path: Path) -> None:
    """Raise InputError for more modules or labels than any model has; the library would build them for ever."""
    for key, value in config.items():
        if isinstance(value, dict):
            _refuse_counts(value, path)
            continue
        if re.search(r"layers?$|depth$|blocks?$", key):
            limit = MOST_LAYERS
        elif re.search("(labels|experts|heads|groups|stages)$", key):
            limit = MOST_MODULES
        else:
            continue
        if isinstance(value, int) and value > limit:
            raise InputError(
                f"{path} says {value:,} for `{cut(key)}`, more than any model has; correct it, or fetch the file again"
            )


def _load(
    kind: Any, folder: Path, config: "PretrainedConfig", precision: str, device: "torch.device"
) -> "tuple[PreTrainedModel, list[str]]":
    """Load a model to a device; return it, and the names of the weights of its head that the files lack.

    All measured weights are loaded here, so this function raises the errors for files that must not be read, and for
    missing or surplus keys of the base model.
    """
    import torch

    from shape_of_learning.checkpoints.tensors import map_tensors

    adapter, folder = folder, find_model_folder(folder)
    if weights := getattr(config, "transformers_weights", None):
        raise InputError(
            f"{folder / CONFIGURATION} names other weights by `transformers_weights` ({cut(weights)}); remove the key"
        )
    tensors = {}
    for file_tensors in map_tensors(folder).values():
        tensors.update(file_tensors)
    where = f"the checkpoint in {folder}"
    refuse_too_large(kind, config, sum(tensor.numel() for tensor in tensors.values()), where)
    model, report = _read(
        kind,
        folder,
        config=config,
        dtype=getattr(torch, precision),
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # the report lists them, and they are refused
    )
    missing_keys = refuse_other_keys(model, report, tensors, where)
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
    return model.eval().requires_grad_(False), missing_keys


def _read(kind: Any, folder: Path, **options: Any) -> Any:
    """Call ``kind.from_pretrained`` on local files, and raise InputError if it fails."""
    quantisation = getattr(options.get("config"), "quantization_config", None)
    method = ""
    try:
        if quantisation is not None:
            method = describe_quantisation(quantisation)
            logger.warning("the weights in %s are quantised (%s)", folder, method)
        return kind.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True, **options
        )
    except MemoryError:
        raise
    except Exception as error:  # code of architectures raises any exception
        if method:
            raise InputError(
                f"the weights in {folder} are quantised ({method}) and cannot be loaded here "
                f"({shorten_error(error)}); install the package that this names, or take the folder of the full weights"
            ) from error
        raise InputError(
            f"the checkpoint in {folder} cannot be loaded ({shorten_error(error)}); delete a fetched folder to "
            "fetch it again, correct a folder of your own"
        ) from error


def describe_quantisation(config: Any) -> str:
    """Describe a quantisation by its method, and by its bits if the configuration has them."""
    settings = config if isinstance(config, dict) else config.to_dict()
    method = str(settings.get("quant_method", "method not stated")).rpartition(".")[2]
    loaded_bits = next((bits for bits in ("4", "8") if settings.get(f"load_in_{bits}bit")), "")
    bits = settings.get("bits") or loaded_bits
    return f"{method}, {bits} bits" if bits else method


def apply_adapter(model: "PreTrainedModel", folder: Path) -> None:
    """Load the adapter in a folder into its model, and log it.

    Raises
    ------
    InputError
        If peft is missing, or the adapter does not fit.
    """
    if find_spec("peft") is None:
        raise InputError(
            f"{folder} holds an adapter, which needs the package peft; install it: `pip install peft`"
        )
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise InputError(f"{folder} holds an adapter without {ADAPTER_WEIGHTS}; save it again")
    try:
        report = model.load_adapter(str(folder))
        heads = _find_other_heads(model, report.unexpected_keys)
        surplus = [key for key in report.unexpected_keys if key.split(".")[0] not in heads]
        wrong_keys = sorted({*report.missing_keys, *surplus})
        if wrong_keys or report.mismatched_keys:
            raise ValueError(f"other weights than the model has places for: {wrong_keys[:1]}")
    except MemoryError:
        raise
    except Exception as error:  # code of adapters raises any exception
        raise InputError(
            f"the adapter in {folder} cannot be applied to its model ({shorten_error(error)}); "
            f"{ADAPTER_REMEDY}"
        ) from error
    logger.warning("the model is measured with the adapter in %s", folder)
    if heads:
        logger.warning("the head of the adapter (`%s`) is left out", "`, `".join(sorted(heads)))


def _find_other_heads(model: "PreTrainedModel", keys: Iterable[str]) -> set[str]:
    """Return the whole modules of an adapter that its model lacks: heads of another task, after all hidden states."""
    configs: dict[str, Any] = model.peft_config
    whole_modules = {
        name
        for config in configs.values()
        for name in getattr(config, "modules_to_save", None) or ()
    }
    names = {part for name, _ in model.named_modules() for part in name.split(".")}
    return whole_modules & {key.split(".")[0] for key in keys} - names


class LanguageModelHead:
    """The part of a language model between its last hidden states and its logits.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Model with its head, such as a ``GPTNeoXForCausalLM`` or a ``BertForMaskedLM``.

    Attributes
    ----------
    model : transformers.PreTrainedModel
        The parameter.
    vocabulary : int
        Width of the logits.

    Notes
    -----
    The library's own forward pass runs, on a stand-in for the base model that returns the rows. So logits include all
    that an architecture adds to a linear map (bias, scale, soft cap, one more dense layer). The head reads each row
    alone, so rows may come in blocks.
    """

    def __init__(self, model: Any):
        self.model = model
        self.vocabulary: int = model.config.get_text_config().vocab_size

    def compute_logits(self, rows: "torch.Tensor", kind: type) -> "torch.Tensor":
        """Return the logits (n, vocabulary) of last hidden states (n, width).

        `kind` is the class of the base model's output, whose fields the head may read.
        """
        sequence = rows.unsqueeze(0)
        head = copy.copy(self.model)  # a copy for this thread, which shares the weights
        # An attribute of the instance hides the module of that name.
        output = kind(last_hidden_state=sequence)
        vars(head)[head.base_model_prefix] = _ConstantBase(output, self.model.base_model)
        return head(inputs_embeds=sequence).logits.squeeze(0)

    def sum_negative_log_likelihoods(
        self, states: "torch.Tensor", predicted_tokens: Sequence[PredictedTokens], kind: type
    ) -> "torch.Tensor":
        """Sum the negative log-likelihoods of the predicted tokens of each window.

        Parameters
        ----------
        states : tensor, shape (rows, length, width)
            Last hidden states of the windows, in their order; further rows are padding.
        predicted_tokens : sequence of PredictedTokens
            Tokens to predict in each window.
        kind : type
            As in :meth:`compute_logits`, which gets blocks of rows with :data:`LOGITS_BYTES` of logits.

        Returns
        -------
        tensor of float64, shape (windows,)
            In nats. Terms are computed in float32, whatever the precision of the logits, and added in float64. A sum
            is infinite if one of its terms is not finite.
        """
        import torch

        block = max(1, LOGITS_BYTES // (4 * self.vocabulary))
        sums = torch.zeros(len(predicted_tokens), dtype=torch.float64, device=states.device)
        for number, tokens in enumerate(predicted_tokens):
            rows = states[number, torch.from_numpy(tokens.positions).to(states.device)]
            targets = torch.from_numpy(tokens.targets).to(states.device)
            for row_block, target_block in zip(
                rows.split(block), targets.split(block), strict=True
            ):
                logits = self.compute_logits(row_block, kind).float()
                terms = torch.nn.functional.cross_entropy(logits, target_block, reduction="none")
                sums[number] += terms.double().sum()
        return sums.nan_to_num(nan=math.inf, posinf=math.inf, neginf=math.inf)


class _ConstantBase:
    """A stand-in for a base model that returns the same output for any input.

    Parameters
    ----------
    output : ModelOutput
    base : transformers.PreTrainedModel
        Its attributes, which some heads read, as in Falcon-H1.
    """

    def __init__(self, output: Any, base: Any):
        self._output, self._base = output, base

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._output

    def __getattr__(self, name: str) -> Any:
        from transformers import PreTrainedModel

        value = getattr(self._base, name)
        # OPT calls the decoder in its base model, so that must be this stand-in, too.
        return self if isinstance(value, PreTrainedModel) else value

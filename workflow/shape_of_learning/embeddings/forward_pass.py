"""A checkpoint loaded without surprises, and the hidden states of all its layers."""

import pickle
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shape_of_learning.embeddings.tokenisation import TokenisedWindow
from shape_of_learning.errors import InputError

if TYPE_CHECKING:
    import torch

# Heads that hidden states do not pass through; AutoModel creates them where weights have none.
UNUSED_WEIGHTS = ("pooler.",)
# What the normalisation after the last block is called: GPT-NeoX and OPT, GPT-2 and kin, Llama and kin.
FINAL_NORMS = ("final_layer_norm", "ln_f", "norm")


class ForwardPass:
    """The base model of a checkpoint (no head), in evaluation mode.

    Parameters
    ----------
    folder : Path
        Checkpoint in Hugging Face format. Code in it is never run.
    precision : str
        ``"float32"``, ``"bfloat16"`` or ``"float16"``, of weights and activations.
    last_layer : str
        ``"after_final_norm"``: the last hidden state as the library returns it, which for most
        decoders is after the final normalisation. ``"before_final_norm"``: the output of the last
        block; the same where there is no such normalisation.
    """

    def __init__(self, folder: Path, *, precision: str, last_layer: str):
        import safetensors
        import torch
        import transformers

        unreadable = (OSError, ValueError, RuntimeError, KeyError, EOFError, pickle.UnpicklingError)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        # TF32 keeps 10 bits of mantissa, too few for distances between neighbours.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        # One thread per batch: sums are then formed in the same order whatever the number of cores.
        torch.set_num_threads(1)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            model, report = transformers.AutoModel.from_pretrained(
                folder,
                dtype=getattr(torch, precision),
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
        except (*unreadable, safetensors.SafetensorError) as error:
            raise InputError(
                f"the checkpoint in {folder} cannot be loaded "
                f"({' '.join(str(error).split())[:300]}); delete a fetched folder to fetch it anew, "
                "mend one of your own"
            ) from error
        missing = [k for k in report["missing_keys"] if not k.startswith(UNUSED_WEIGHTS)]
        if missing:
            raise InputError(
                f"the checkpoint in {folder} lacks {len(missing)} weights, such as `{missing[0]}`, "
                "which would be random numbers; remove it from the model's entry"
            )
        self.model = model.to(self.device).eval().requires_grad_(False)
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

    def hidden_states(self, batch: list[TokenisedWindow], padding: int) -> list[list[np.ndarray]]:
        """Run one batch of windows, padded on the right and masked.

        Parameters
        ----------
        batch : list of TokenisedWindow
            Windows.
        padding : int
            Token that fills up short windows. RoBERTa derives positions from it, so it must be the
            tokenizer's own where there is one.

        Returns
        -------
        list over layers of list over windows of ndarray of float32, shape (kept, width)
        """
        import torch

        length = max(len(window.ids) for window in batch)
        ids = np.full((len(batch), length), padding, dtype=np.int64)
        mask = np.zeros((len(batch), length), dtype=np.int64)
        for row, window in enumerate(batch):
            ids[row, : len(window.ids)] = window.ids
            mask[row, : len(window.ids)] = 1
        with torch.inference_mode():
            output = self.model(
                input_ids=torch.from_numpy(ids).to(self.device),
                attention_mask=torch.from_numpy(mask).to(self.device),
                output_hidden_states=True,
            )
            states = list(output.hidden_states)
            if self._before_final_norm:
                states[-1] = self._block_output.value
            return [_kept_rows(state, batch) for state in states]

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

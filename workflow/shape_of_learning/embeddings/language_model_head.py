"""The head of a language model by itself: from last hidden states to logits."""

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


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

    def output_embeddings(self) -> "torch.nn.Module | None":
        """Return the linear map onto the vocabulary, whose `weight` has a row for each entry of it."""
        return self.model.get_output_embeddings()

    def logits(self, rows: "torch.Tensor", kind: type) -> "torch.Tensor":
        """Apply the head.

        Parameters
        ----------
        rows : tensor, shape (n, width)
            Last hidden states, as the base model returns them.
        kind : type
            Class of the base model's output, whose fields the head may ask for.

        Returns
        -------
        tensor, shape (n, vocabulary)
        """
        sequence = rows.unsqueeze(0)
        head = copy.copy(self.model)  # shares its weights; other threads have copies of their own
        # Where weights are spread over devices, `accelerate` has given the instance a `forward` that
        # is bound to the original, with its base model. What it does is done for the parts as well.
        vars(head).pop("forward", None)
        # An attribute of the instance hides the module of that name.
        vars(head)[head.base_model_prefix] = _Returns(kind(last_hidden_state=sequence))
        return head(inputs_embeds=sequence).logits.squeeze(0)


class _Returns:
    """In the place of a base model: its output, whatever the input."""

    def __init__(self, output: Any):
        self._output = output

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._output

    @property
    def decoder(self) -> "_Returns":
        return self  # what OPT calls is not its base model but the decoder in it

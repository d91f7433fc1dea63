"""How many windows go through a model together, as free memory allows."""

from typing import TYPE_CHECKING, Any

from shape_of_learning.embeddings.window_batches import LENGTH_UNIT

if TYPE_CHECKING:
    from shape_of_learning.embeddings.forward_pass import ForwardPass

# More gain nothing on a CPU, where each window batch has one thread.
WINDOWS_ON_A_CPU = 16
# Some thousand rows keep all multiprocessors busy in every matrix product. More would only fill
# host memory: all layers of two window batches wait there to be written, 4.4 GB for Llama-2-7B.
TOKENS_ON_A_GPU = 4096
# The rest is for blocks of logits, what the libraries set aside, and the error of the estimate.
SHARE_OF_FREE_MEMORY = 0.8


def automatic_window_batch_size(forward: "ForwardPass", longest: int) -> int:
    """Choose how many of the longest windows, of `longest` tokens, go together."""
    if forward.device.type == "cpu":
        return WINDOWS_ON_A_CPU
    length = -(-longest // LENGTH_UNIT) * LENGTH_UNIT
    per_token = bytes_per_token(forward.config, length, forward.model.dtype.itemsize)
    return windows_that_fit(forward.free_memory(), per_token, length)


def bytes_per_token(config: Any, length: int, itemsize: int) -> int:
    r"""Estimate the GPU memory that one token takes during a forward pass.

    .. math:: s \left[2 (L + 1) d + 8 d + 3 m\right] + h T (2 s + 4) + 4 d

    with s bytes per number, L layers of width d, feed-forward width m, h heads and T tokens per
    row. In this order: the hidden states of all layers, twice, since in the worst case those of the
    window batch before are still on their way to the host; what a block keeps at a time (residual, norm,
    queries, keys, values and their rotated copies; gate, up and their product); attention scores,
    probabilities and their softmax in float32, where the library forms them at all; and one hidden
    state converted to float32.

    Parameters
    ----------
    config : transformers.PretrainedConfig
        Of the model.
    length : int
        Tokens per row, padding included.
    itemsize : int
        Bytes per number of the activations.
    """
    config = config.get_text_config()
    layers, width = config.num_hidden_layers, config.hidden_size
    feed_forward = getattr(config, "intermediate_size", None) or 4 * width
    heads = getattr(config, "num_attention_heads", None) or 1
    states = 2 * (layers + 1) * width
    working = 8 * width + 3 * feed_forward
    return itemsize * (states + working) + heads * length * (2 * itemsize + 4) + 4 * width


def windows_that_fit(free: int, per_token: int, length: int) -> int:
    """Divide free memory by what windows of `length` tokens take; at least one, at most enough."""
    tokens = min(TOKENS_ON_A_GPU, int(SHARE_OF_FREE_MEMORY * free) // per_token)
    return max(1, tokens // length)

import argparse
import json

import pytest

from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.script_arguments.sample import add_sample_arguments
from shape_of_learning.script_arguments.settings import VARIABLE

PROTOCOL = SamplingProtocol(128, 512, 7, "bfloat16", "before_final_norm")
SHAPE = {"role": "decoder", "layers": 3, "hidden_size": 32, "last_hidden_size": 16}


def parsed():
    parser = argparse.ArgumentParser()
    add_sample_arguments(parser)
    return parser.parse_args(
        ["--model", "m", "--revision", "step 1", "--checkpoint", "a folder", "--text", "a text",
         "--tensors", "t.csv",
         "--threads", "2", "--protocol", PROTOCOL.to_json(), "--shape", json.dumps(SHAPE)]
    )  # fmt: skip


def test_protocol_and_shape_arrive_as_they_were_sent():
    arguments = parsed()
    assert arguments.protocol == PROTOCOL
    assert arguments.shape == SHAPE


@pytest.mark.parametrize(
    ("settings", "size"),
    [({}, None), ({"window_batch_size": "auto"}, None), ({"window_batch_size": 4}, 4)],
)
def test_the_window_batch_size_is_no_argument_since_no_result_depends_on_it(
    settings, size, monkeypatch
):
    monkeypatch.setenv(VARIABLE, json.dumps(settings))
    assert parsed().window_batch_size == size

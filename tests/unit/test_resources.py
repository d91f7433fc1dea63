"""The resources that jobs request of a scheduler grow with their work."""

from pathlib import Path

import pytest

from shape_of_learning.files import read_yaml
from shape_of_learning.plan import resources as needs
from shape_of_learning.plan.entries import Entry, read_entries, read_models
from shape_of_learning.plan.settings import Sampling, Settings

REPOSITORY = Path(__file__).parents[2]
SETTINGS = Settings.model_validate(read_yaml(REPOSITORY / "config/config.yaml"))
ENTRIES = read_entries(REPOSITORY / "config/models")
RECIPE = {"learning_rate": 2e-5, "batch_size": 16, "epochs": 3, "seed": 0, "threads": 8}
ENTRIES["tuned"] = "", {"finetuning": {"of": "llama-2-7b@main", "task": "sst2", **RECIPE}}
MODEL, TUNED = read_models(ENTRIES, ["llama-2-7b", "tuned"]).values()
JOBS = [
    needs.estimate_forward,
    needs.estimate_layer,
    needs.estimate_checkpoint,
    needs.estimate_training,
]


def change_shape(model: Entry, **shape: int) -> Entry:
    return model.model_copy(update=shape)


def test_the_estimate_of_weights_is_near_that_of_a_published_model():
    # Llama-2-7B has 6.74e9, of which the output's 131 million are not shared with the input.
    # The bound on its vocabulary is BLOOM's.
    assert 6.74e9 < needs.Work.make_work(MODEL, SETTINGS).weights < 1.15 * 6.74e9


@pytest.mark.parametrize("job", JOBS)
def test_requested_resources_grow_with_the_width(job):
    narrow_job = job(TUNED, SETTINGS, 8)
    wide_job = job(change_shape(TUNED, hidden_size=2 * MODEL.shape.hidden_size), SETTINGS, 8)
    assert wide_job.memory > 1.2 * narrow_job.memory > 0
    assert wide_job.minutes > 1.2 * narrow_job.minutes > 0


def test_vectors_per_dimension_give_a_wide_model_more_windows():
    sampling = Sampling(windows=128, window_characters=512, vectors_per_dimension=16)
    for width, windows in ((512, 128), (768, 128), (4096, 640), (4097, 641)):
        assert sampling.count_windows(width) == windows
    assert SETTINGS.sampling.count_windows(4096) == 128  # as in the first paper
    linear = SETTINGS.model_copy(update={"sampling": sampling})
    assert (
        needs.Work.make_work(MODEL, linear).tokens
        == 5 * needs.Work.make_work(MODEL, SETTINGS).tokens
    )


def test_later_attempts_request_more():
    resources = needs.estimate_forward(MODEL, SETTINGS, 8)
    assert resources.mem_mb(3) == 3 * resources.mem_mb(1) > 3 * resources.memory
    assert resources.runtime(2) == 2 * resources.runtime(1) > 2 * resources.minutes

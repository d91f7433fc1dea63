"""The resources of a job that measures a fine-tuning on its task."""

from papers.finetuning.resources import estimate_task
from plans import make_run


def test_requested_resources_grow_with_width_and_examples():
    run = make_run({})
    model = run.models["minilm-l6-topic"]
    needs = estimate_task(model, run.settings, 8)
    wider = model.model_copy(update={"hidden_size": 2 * model.shape.hidden_size})
    wide = estimate_task(wider, run.settings, 8)
    assert wide.memory > 1.2 * needs.memory > 0
    assert wide.minutes > 1.2 * needs.minutes > 0
    more = make_run({"tasks": {"topic": {"most": {"train": 3200}}}}).settings
    assert estimate_task(model, more, 8).minutes > needs.minutes

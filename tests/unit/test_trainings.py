"""The shape of a model during training: adapters, shards, checkpointed gradients, and failures."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import peft
import pytest
import torch
import transformers as hf

import shape_of_learning as sol
import tiny_models
from shape_of_learning.checkpoints.manifest import MANIFEST, compare_with_manifest, read_manifest
from shape_of_learning.errors import InputError
from shape_of_learning.training import ShapeCallback, ShapeProbe

TEXTS = [f"{n} layers see {n * n} tokens; what {n % 7} a b c of a text learns" for n in range(20)]
MEASURES = ["anisotropy", "two_nn"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny_models.save_tokenizer(folder)
    return hf.AutoTokenizer.from_pretrained(folder, pad_token="<|endoftext|>")


def make_model(kind=hf.LlamaForCausalLM, **changes):
    torch.manual_seed(0)
    config = tiny_models.CONFIGURATIONS["llama"]()
    for key, value in changes.items():
        setattr(config, key, value)
    return kind(config)


class Recorder(hf.TrainerCallback):
    """A tracker that keeps logs by step."""

    def __init__(self):
        self.logs_by_step = {}

    def on_log(self, args, state, control, logs=None, **arguments):
        self.logs_by_step.setdefault(state.global_step, {}).update(logs)


def train(model, tokenizer, folder, *, callbacks=(), begin=None, **options):
    """Train for four steps; return the trainer, and (weights, losses, state of random numbers)."""
    ids = [tokens[:16] for tokens in tokenizer(TEXTS)["input_ids"]]
    options = {"logging_steps": 2, "report_to": [], "save_strategy": "no", **options}
    arguments = hf.TrainingArguments(
        str(folder), max_steps=4, per_device_train_batch_size=2, use_cpu=True, seed=5, **options
    )
    hf.set_seed(5)
    trainer = hf.Trainer(
        model,
        arguments,
        train_dataset=[{"input_ids": row, "labels": row} for row in ids],
        processing_class=tokenizer,
        callbacks=list(callbacks),
    )
    if begin:
        begin(trainer)
    trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    weights = [weight.detach().clone() for weight in model.parameters()]
    return trainer, (weights, losses, torch.get_rng_state())


def assert_same_training(training, other_training):
    for first_weight, second_weight in zip(training[0], other_training[0], strict=True):
        assert torch.equal(first_weight, second_weight)
    assert training[1] == other_training[1]
    assert torch.equal(training[2], other_training[2])


def select_shape_values(row):
    return {key: value for key, value in row.items() if key.startswith("shape/")}


def list_facts(model):
    """List the properties of a model that a measurement must not change."""
    modules = list(model.modules())
    return (
        [
            (module.training, len(module._forward_hooks), len(module._forward_pre_hooks))
            for module in modules
        ],
        [weight.requires_grad for weight in model.parameters()],
        model.config.to_dict(),
        {name: buffer.clone() for name, buffer in model.named_buffers()}.keys(),
        "forward" in vars(model),
    )


def test_a_callback_logs_the_same_values_in_every_way_of_adding_it(tokenizer, tmp_path):
    """Its values reach trackers before and after it, and the history of the trainer."""
    trainings = []
    for form in ("callbacks", "trainer", "added"):
        recorders = Recorder(), type("Later", (Recorder,), {})()
        options = {"every": 2, "measures": MEASURES, "table": tmp_path / f"{form}.csv"}
        if form == "callbacks":
            arguments = {"callbacks": [recorders[0], ShapeCallback(TEXTS, **options), recorders[1]]}
        else:
            begin = {
                "trainer": lambda trainer, o=options: ShapeCallback(trainer, TEXTS, **o),
                "added": lambda trainer, o=options: trainer.add_callback(
                    ShapeCallback(texts=TEXTS, **o)
                ),
            }
            arguments = {"callbacks": recorders, "begin": begin[form]}
        trainer, training = train(make_model(), tokenizer, tmp_path, **arguments)
        trainer_history = {
            row["step"]: select_shape_values(row)
            for row in trainer.state.log_history
            if select_shape_values(row)
        }
        for recorder in recorders:
            assert {
                step: select_shape_values(logs) for step, logs in recorder.logs_by_step.items()
            } == trainer_history
        trainings.append((trainer_history, training))
    assert list(trainings[0][0]) == [0, 2, 4]
    for history, training in trainings[1:]:
        assert history == trainings[0][0]
        assert_same_training(training, trainings[0][1])
    _, plain_training = train(make_model(), tokenizer, tmp_path)
    assert_same_training(plain_training, trainings[0][1])


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_checkpointed_gradients_change_neither_values_nor_the_training(tokenizer, tmp_path):
    tables = []
    for options in ({}, {"gradient_checkpointing": True}):
        _, plain_training = train(make_model(), tokenizer, tmp_path, **options)
        callback = ShapeCallback(
            TEXTS, every=2, measures=MEASURES, layers=[0, 1, -1], table=tmp_path / "shape.csv"
        )
        model = make_model()
        _, probed_training = train(model, tokenizer, tmp_path, callbacks=[callback], **options)
        assert_same_training(plain_training, probed_training)
        tables.append((tmp_path / "shape.csv").read_text())
        (tmp_path / "shape.csv").unlink()
    assert tables[0] == tables[1]

    model = make_model().train()
    table = sol.measure(model, tokenizer, TEXTS, measures=MEASURES)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    facts = list_facts(model)
    pd.testing.assert_frame_equal(table, sol.measure(model, tokenizer, TEXTS, measures=MEASURES))
    assert list_facts(model) == facts


def run_texts_separately(model, tokenizer):
    """Run each text by itself through a model with its adapter; return the hidden states of all tokens."""
    text_states = []
    for text in TEXTS:
        tokens = tokenizer(text, return_tensors="pt")
        length = tokens["input_ids"].shape[1]
        with torch.no_grad():
            output = model(**tokens, output_hidden_states=True)
        text_states.append([state[0, -length:].numpy() for state in output.hidden_states])
    return [np.concatenate(states) for states in zip(*text_states, strict=True)]


ADAPTERS = {
    "LORA": peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False),
    "IA3": peft.IA3Config(
        target_modules=["v_proj"], feedforward_modules=[], init_ia3_weights=False
    ),
    "PROMPT_TUNING": peft.PromptTuningConfig(num_virtual_tokens=5),
    "P_TUNING": peft.PromptEncoderConfig(num_virtual_tokens=5, encoder_hidden_size=8),
    "PREFIX_TUNING": peft.PrefixTuningConfig(num_virtual_tokens=5),
}


@pytest.mark.parametrize("kind", ADAPTERS)
def test_a_model_is_measured_and_logged_with_its_adapter(tokenizer, kind, caplog):
    caplog.set_level("INFO")
    plain = sol.measure(make_model(), tokenizer, TEXTS, measures=["anisotropy"])
    ADAPTERS[kind].task_type = "CAUSAL_LM"
    model = peft.get_peft_model(make_model(), ADAPTERS[kind])
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn_like(weight))
    facts = list_facts(model.train())
    table = sol.measure(model, tokenizer, TEXTS, measures=["anisotropy"])
    assert list_facts(model) == facts
    expected = [sol.anisotropy(state) for state in run_texts_separately(model.eval(), tokenizer)]
    assert table["value"].iloc[:-1].to_numpy() == pytest.approx(expected, rel=1e-5)
    assert not np.allclose(table["value"], plain["value"], rtol=1e-4)
    assert table.attrs["adapters"] == {"default": kind}
    assert f"measured with its adapter `default` ({kind})" in caplog.text
    assert plain.attrs["adapters"] == {}


@pytest.mark.parametrize("options", [{}, {"bf16": True}])
def test_a_training_of_an_adapter_is_the_same_with_and_without_a_callback(
    tokenizer, tmp_path, options
):
    def make_lora():
        torch.manual_seed(1)
        return peft.get_peft_model(make_model(), ADAPTERS["LORA"])

    _, plain_training = train(make_lora(), tokenizer, tmp_path, **options)
    table = tmp_path / "shape.csv"
    callback = ShapeCallback(TEXTS, every=2, measures=["anisotropy"], layers=3, table=table)
    model = make_lora()
    table_before = sol.measure(model, tokenizer, TEXTS, measures=["anisotropy"], layers=3)
    _, probed_training = train(model, tokenizer, tmp_path, callbacks=[callback], **options)
    assert_same_training(plain_training, probed_training)
    values = pd.read_csv(table).groupby("step")["value"].first()
    # If the Trainer moves the model to a GPU, sums have another order.
    assert values[0] == pytest.approx(table_before["value"].iloc[0], rel=1e-12)
    assert values[4] != values[0]


def test_virtual_tokens_count_towards_the_length_of_a_model(tokenizer):
    config = peft.PromptTuningConfig(num_virtual_tokens=120, task_type="CAUSAL_LM")
    model = peft.get_peft_model(make_model(), config)
    with pytest.raises(InputError, match=r"its adapter 120 more, .* for 128; give shorter"):
        sol.measure(model, tokenizer, TEXTS)
    options = {"measures": ["anisotropy"], "window_tokens": 8}
    attributes = sol.measure(model, tokenizer, TEXTS, **options).attrs
    assert attributes["vectors"] / attributes["windows"] <= 8
    with pytest.raises(InputError, match="`window_tokens` is 9, but the model was made for 8"):
        sol.measure(model, tokenizer, TEXTS, window_tokens=9)


def test_a_processor_has_a_tokenizer(tokenizer, tmp_path):
    images = hf.CLIPImageProcessor()
    processor = hf.LlavaProcessor(image_processor=images, tokenizer=tokenizer, patch_size=14)
    values = [
        ShapeProbe(processing_class, TEXTS, measures=["anisotropy"], table=tmp_path / "t.csv")(
            make_model(), 0
        )
        for processing_class in (tokenizer, processor)
    ]
    assert values[0] == values[1]
    with pytest.raises(InputError, match="is a CLIPImageProcessor"):
        ShapeProbe(images, TEXTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": [9]}, "no layer 9"),
        ({"texts": ["a b c " * 100]}, r"made for 128; give shorter `texts`"),
        ({"texts": ["a b c"]}, "give more texts"),
        ({"model": hf.BartForCausalLM}, None),
    ],
)
def test_a_callback_that_cannot_measure_is_refused_before_the_first_step(
    tokenizer, tmp_path, options, message
):
    if message is None:
        small = dict(d_model=32, encoder_layers=1, decoder_layers=1, vocab_size=300)
        model = hf.BartForConditionalGeneration(hf.BartConfig(**small, encoder_ffn_dim=32))
        options, message = {}, "an encoder and a decoder"
    else:
        model = make_model()
    texts = options.pop("texts", TEXTS)
    callback = ShapeCallback(texts, table=tmp_path / "shape.csv", **options)
    with pytest.raises(InputError, match=message):
        train(model, tokenizer, tmp_path, callbacks=[callback])


def test_wrong_arguments_are_refused_when_a_callback_is_made(tmp_path):
    for arguments, message in (
        ({"texts": "one text"}, "list of texts"),
        ({"texts": None}, "list of texts"),
        ({"texts": [b"a"]}, "`texts` has b"),
        ({"every": 0}, "`every` is 0"),
        ({"every": 2.5}, "`every`"),
        ({"name": 5}, "`name`"),
        ({"window_tokens": 0}, "`window_tokens`"),
        ({"measures": ["two_n"]}, "two_nn"),
        ({"layers": [1.5]}, "whole numbers"),
        ({"layers": []}, "empty"),
        ({"bands": {"rankme": (0, 1)}}, "rankme"),
        ({"bands": {"two_nn": (1,)}}, "bands"),
        ({"bands": {"two_nn": 5}}, "bands"),
        ({"bands": {"two_nn": ("low", "high")}}, "bands"),
        ({"bands": {"two_nn": (9, 2)}}, "bands"),
        ({"bands": ["two_nn"]}, "bands"),
        ({"table": tmp_path}, "folder"),
    ):
        with pytest.raises(InputError, match=message):
            ShapeCallback(**{"texts": TEXTS, **arguments})
    assert ShapeCallback(TEXTS, every=np.int64(3)).every == 3


def test_a_tokenizer_in_the_place_of_a_trainer_is_refused(tokenizer):
    with pytest.raises(InputError, match="`tokenizer=`"):
        ShapeCallback(tokenizer, TEXTS)


def exhaust_memory(module, inputs):
    if not module.training:
        raise MemoryError


def test_a_measurement_that_fails_neither_ends_nor_changes_a_training(tokenizer, tmp_path, caplog):
    """Memory is exhausted from the third step on, the table is foreign, or its folder is a file."""
    _, plain_training = train(make_model(), tokenizer, tmp_path)
    foreign = tmp_path / "foreign.csv"
    foreign.write_text("date,weight\n1,2\n")
    for table, message in (
        (foreign, "name another `table`"),
        (foreign / "shape.csv", "FileExistsError"),
        (tmp_path / "shape.csv", "memory is exhausted"),
    ):
        caplog.clear()
        model = make_model()

        class Exhausted(hf.TrainerCallback):
            def on_step_end(self, args, state, control, model=None, **arguments):
                if state.global_step == 2:
                    model.model.layers[1].register_forward_pre_hook(exhaust_memory)

        shape = ShapeCallback(TEXTS, every=1, measures=["anisotropy"], table=table)
        callbacks = [shape, Exhausted()]
        trainer, probed_training = train(model, tokenizer, tmp_path, callbacks=callbacks)
        assert_same_training(plain_training, probed_training)
        assert [row["step"] for row in trainer.state.log_history if select_shape_values(row)] == [
            0,
            1,
            2,
        ]
        errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert sum(message in error for error in errors) == 1
        assert len(errors) == 1 + (table.name != "shape.csv" or table.parent == foreign)
    assert foreign.read_text() == "date,weight\n1,2\n"
    assert set(pd.read_csv(tmp_path / "shape.csv")["step"]) == {0, 1, 2}


def test_a_second_training_leaves_the_table_of_the_first_as_it_is(tokenizer, tmp_path, caplog):
    """The second training has other layers, and begins anew or seems to resume."""
    table = tmp_path / "shape.csv"
    options = {"every": 2, "measures": ["anisotropy"], "layers": [1, -1], "table": table}
    train(make_model(), tokenizer, tmp_path / "first", callbacks=[ShapeCallback(TEXTS, **options)])
    content = table.read_text()
    assert set(pd.read_csv(table)["step"]) == {0, 2, 4}
    callback = ShapeCallback(TEXTS, **options)
    model = make_model(num_hidden_layers=2)
    trainer, _ = train(model, tokenizer, tmp_path / "second", callbacks=[callback])
    assert [row["step"] for row in trainer.state.log_history if select_shape_values(row)] == [
        0,
        2,
        4,
    ]
    assert table.read_text() == content
    (error,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert str(table) in error
    ShapeProbe(tokenizer, TEXTS, measures=["anisotropy"], layers=[1], table=table)(model, 3)
    assert table.read_text() == content

    table.rename(tmp_path / "first.csv")
    callback.probe(model, 5)
    assert set(pd.read_csv(table)["step"]) == {0, 2, 4, 5}  # no row of the second training is lost


def test_a_training_that_begins_again_keeps_earlier_rows(tokenizer, tmp_path):
    """The first training ended, the second exhausted memory; the table has the rows of the third."""

    class SmallMemory(hf.Trainer):
        def training_step(self, model, inputs, *arguments_of_trainer):
            if len(inputs["input_ids"]) > 2 and self.state.global_step:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
            return super().training_step(model, inputs, *arguments_of_trainer)

    ids = [tokens[:16] for tokens in tokenizer(TEXTS)["input_ids"]]
    arguments = hf.TrainingArguments(
        str(tmp_path / "run"),
        max_steps=2,
        per_device_train_batch_size=3,
        auto_find_batch_size=True,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
    )
    table = tmp_path / "shape.csv"
    callback = ShapeCallback(
        TEXTS, every=1, measures=["anisotropy"], table=table, tokenizer=tokenizer
    )
    rows = [{"input_ids": row, "labels": row} for row in ids]
    trainer = SmallMemory(make_model(), arguments, train_dataset=rows, callbacks=[callback])
    trainer.train()
    trainer.train()
    logged_values = [
        row["shape/anisotropy"] for row in trainer.state.log_history if select_shape_values(row)
    ]
    steps, means = [], []
    for path in (tmp_path / "shape-1.csv", tmp_path / "shape-2.csv", table):
        average_rows = pd.read_csv(path)
        average_rows = average_rows[average_rows["layer"].isna()]
        steps.append(list(average_rows["step"]))
        means.append(list(average_rows["value"]))
    assert steps == [[0, 1], [0, 1, 2], [0, 1, 2]]
    assert means[-1] == pytest.approx(logged_values)


def test_a_training_that_resumes_with_another_text_leaves_the_table_as_it_is(
    tokenizer, tmp_path, caplog
):
    options = {"measures": ["anisotropy"], "layers": [1], "table": tmp_path / "shape.csv"}
    ShapeProbe(tokenizer, TEXTS, **options)(make_model(), 0)
    content = options["table"].read_text()
    ShapeProbe(tokenizer, [text[:30] for text in TEXTS], **options)(make_model(), 2)
    assert options["table"].read_text() == content
    assert "text" in caplog.text
    ShapeProbe(tokenizer, TEXTS, **options)(make_model(), 2)
    assert set(pd.read_csv(options["table"])["step"]) == {0, 2}


def test_callbacks_of_one_trainer_need_different_names(tokenizer, tmp_path):
    texts = {"forward": TEXTS, "reversed": [text[::-1] for text in TEXTS]}
    options = {"measures": ["anisotropy"], "layers": [1], "table": tmp_path / "shape.csv"}
    unnamed_callbacks = [ShapeCallback(text, **options) for text in texts.values()]
    with pytest.raises(InputError, match="`name="):
        train(make_model(), tokenizer, tmp_path, callbacks=unnamed_callbacks)
    assert not options["table"].exists()
    named_callbacks = [ShapeCallback(text, name=name, **options) for name, text in texts.items()]
    trainer, _ = train(make_model(), tokenizer, tmp_path, callbacks=named_callbacks)
    logged_values = {
        key: value
        for row in trainer.state.log_history
        for key, value in row.items()
        if key.endswith("/anisotropy")
    }
    table = pd.read_csv(options["table"])
    means = table[table["layer"].isna()].set_index("model")["value"]
    assert logged_values == {f"shape/{name}/anisotropy": means[name] for name in texts}


@pytest.mark.parametrize("step", [np.int64(4), torch.tensor([4]), 4.0])
def test_a_step_may_be_any_whole_number(tokenizer, tmp_path, step):
    table = tmp_path / "shape.csv"
    probe = ShapeProbe(tokenizer, TEXTS, measures=["anisotropy"], table=table)
    assert probe(make_model(), step) == probe(make_model(), 5)
    assert list(pd.read_csv(table)["step"].unique()) == [4, 5]


@pytest.mark.parametrize("step", ["3", None, 1.5, float("nan"), -1, torch.tensor([1, 2])])
def test_a_step_that_is_no_whole_number_is_refused(tokenizer, tmp_path, step):
    probe = ShapeProbe(tokenizer, TEXTS, measures=["anisotropy"], table=tmp_path / "shape.csv")
    with pytest.raises(InputError, match="`step`"):
        probe(make_model(), step)
    assert not list(tmp_path.iterdir())


def test_long_texts_are_split(tokenizer, tmp_path):
    options = {"measures": ["anisotropy"], "layers": [1], "table": tmp_path / "shape.csv"}
    probe = ShapeProbe(tokenizer, ["a b c " * 100, *TEXTS], window_tokens=100, **options)
    assert probe(make_model(), 0)
    assert pd.read_csv(options["table"])["windows"].min() > 1 + len(TEXTS)


def test_trainings_with_names_share_a_table_and_continue_it_on_resuming(tokenizer, tmp_path):
    table = tmp_path / "shape.csv"
    for name, steps in ("one", (0, 2, 4)), ("other", (0, 2)), ("one", (4, 6)):
        options = {"measures": ["anisotropy"], "layers": [1], "table": table, "name": name}
        probe = ShapeProbe(tokenizer, TEXTS, **options)
        for step in steps:
            probe(make_model(), step)
    layer_rows = pd.read_csv(table)
    layer_rows = layer_rows[layer_rows["layer"] == 1]
    assert list(layer_rows.loc[layer_rows["model"] == "one", "step"]) == [0, 2, 4, 6]
    assert list(layer_rows.loc[layer_rows["model"] == "other", "step"]) == [0, 2]


def test_rows_that_do_not_fit_on_a_full_disk_are_written_later(tokenizer, tmp_path, caplog):
    """An empty table, which a full disk leaves, is begun anew."""
    table = tmp_path / "shape.csv"
    table.touch()
    model, options = make_model(), {"measures": ["anisotropy"], "layers": [1]}
    probe = ShapeProbe(tokenizer, TEXTS, table=table, **options)
    probe(model, 0)
    content = table.read_text()
    _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + 10, hard_limit))
        values = [probe(model, step) for step in (1, 2)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard_limit, hard_limit))
    assert values[0]["shape/anisotropy/layer_1"] > 0
    assert table.read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == ["shape.csv"]
    assert caplog.text.count("written") == 1
    probe(model, 3)
    rows = pd.read_csv(table, dtype={"value": str})
    assert list(rows["step"].unique()) == [0, 1, 2, 3]
    assert rows["value"].nunique() == 1  # all values of one model have the same digits


def test_a_broken_block_is_outside_its_band_and_logged(tokenizer, tmp_path, caplog):
    model = make_model()
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[0, 0] = torch.inf
    probe = ShapeProbe(
        tokenizer,
        TEXTS,
        measures=["anisotropy"],
        bands={"anisotropy": (0, 1)},
        table=tmp_path / "shape.csv",
    )
    values = probe(model, 7)
    assert values["shape/anisotropy/layer_1"] > 0
    assert np.isnan(values["shape/anisotropy"])
    assert "step 7: anisotropy is undefined, and should be 0 to 1" in caplog.text
    table = pd.read_csv(tmp_path / "shape.csv")
    assert table["value"].isna().tolist() == [False, True, True]


SHARDED_TRAINING = """
import sys
import torch
import torch.distributed as distributed
import transformers as hf
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

import shape_of_learning as sol
import tiny_models
from shape_of_learning.one_model import loaded_model
from shape_of_learning.training import ShapeProbe

kind, folder = sys.argv[1:]
distributed.init_process_group("gloo")
rank = distributed.get_rank()
loaded_model.PATIENCE = 3 if kind == "alone" else 60
tokenizer = hf.AutoTokenizer.from_pretrained(folder, pad_token="<|endoftext|>")
texts = [f"{n} layers see {n * n} tokens; a b c {n % 7} of a text" for n in range(20)]
options = {"measures": ["anisotropy"], "layers": [0, 1, 3]}


def make_model():
    torch.manual_seed(0)
    return hf.LlamaForCausalLM(tiny_models.CONFIGURATIONS["llama"]())


def shard_model():
    model = make_model()
    if kind == "wrapped":
        return FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    mesh = init_device_mesh("cpu", (2,))
    for block in model.model.layers:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train_shards(probe):
    model = shard_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    values = []
    for step in range(3):
        values.append(probe(model, step) if probe else {})
        ids = torch.randint(0, 300, (2, 16))
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    weights = list(model.parameters())
    parts = [weight.to_local() if hasattr(weight, "to_local") else weight for weight in weights]
    return [part.detach().clone() for part in parts], values


takes_part = rank == 0 or kind != "alone"
table = f"{folder}/{kind}.csv" if rank == 0 else f"{folder}/of_another_rank.csv"
probe = ShapeProbe(tokenizer, texts, table=table, **options) if takes_part else None
probed, values = train_shards(probe)
plain, _ = train_shards(None)
assert all(map(torch.equal, probed, plain))
if kind == "again":  # the second training must not use the keys of the first
    loaded_model.PATIENCE = 3
    probed, second = train_shards(probe if rank == 0 else None)
    assert all(map(torch.equal, probed, plain)) and second == [{}] * 3, second
expected = sol.measure(make_model(), tokenizer, texts, **options)["value"].tolist()
if kind != "alone":
    measured_values = sol.measure(shard_model(), tokenizer, texts, **options)["value"].tolist()
    assert measured_values == expected, (measured_values, expected)
    assert [bool(step_values) for step_values in values] == [rank == 0] * 3, values
    assert rank or list(values[0].values()) == expected, values
else:
    assert values == [{}] * 3
print(f"rank {rank} is done")
distributed.barrier()
distributed.destroy_process_group()
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sharded", "wrapped", "alone", "again"])
def test_all_ranks_of_a_sharded_training_measure_it_together_without_waiting_for_ever(
    tmp_path, kind
):
    tiny_models.save_tokenizer(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(SHARDED_TRAINING)
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), str(tests.parent / "workflow")])
    process = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", script, kind, tmp_path),
        ],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert process.returncode == 0, process.stderr
    assert all(f"rank {rank} is done" in process.stdout for rank in range(2))  # perhaps in one line
    assert process.stderr.count("not all 2 processes came to measure it within 3 s") == (
        kind in ("alone", "again")
    )
    assert (tmp_path / f"{kind}.csv").exists() == (kind != "alone")


def test_one_alert_is_sent_when_a_value_leaves_its_band(tokenizer):
    alerts = []
    probe = ShapeProbe(
        tokenizer,
        TEXTS,
        measures=["mean_norm", "largest_coordinate"],
        layers=[1, -1],
        bands={"mean_norm": (0, 1e9), "largest_coordinate/layer_1": (0.05, 1)},
        alert=alerts.append,
        table=os.devnull,
        name="tiny",
    )
    model, scales = make_model(), (1, 100, 100, 1, 100)
    embeddings = model.get_input_embeddings().weight
    original = embeddings.detach().clone()
    for step, scale in enumerate(scales):
        with torch.no_grad():
            embeddings.copy_(original * scale)
        values = probe(model, step)
        assert {"shape/mean_norm", "shape/largest_coordinate/layer_1"} <= values.keys()
    assert [alert.step for alert in alerts] == [1, 4]
    first = alerts[0]
    assert first[:4] == ("tiny", 1, "largest_coordinate", 1)
    assert first.value > first.high == 1
    assert first.low == 0.05
    embeddings.data.fill_(torch.nan)
    probe(model, 5)
    assert np.isnan(alerts[-1].value)
    assert "undefined" in alerts[-1].sentence
    assert alerts[-1].layer is None


@pytest.mark.parametrize("error", [RuntimeError("no run"), OSError(28, "No space left on device")])
def test_an_alert_that_fails_is_logged_and_changes_no_training(tokenizer, tmp_path, caplog, error):
    calls = []

    def fail(alert):
        calls.append(alert)
        raise error

    _, plain_training = train(make_model(), tokenizer, tmp_path / "plain")
    options = {"bands": {"mean_norm": (0, 1e-9)}, "alert": fail, "table": tmp_path / "shape.csv"}
    callback = ShapeCallback(TEXTS, every=1, **options)
    _, watched_training = train(make_model(), tokenizer, tmp_path / "watched", callbacks=[callback])
    assert_same_training(plain_training, watched_training)
    assert len(calls) == 5  # tried again at every step, since no alert was sent
    assert sum("the alert is not sent" in line.message for line in caplog.records) == 1


def test_bands_and_alerts_that_cannot_work_are_refused(tokenizer):
    with pytest.raises(InputError, match="`mada`"):
        ShapeProbe(tokenizer, TEXTS, measures=MEASURES, bands={"mada/layer_1": (0, 1)})
    with pytest.raises(InputError, match="`alert`"):
        ShapeProbe(tokenizer, TEXTS, alert="trackio")
    probe = ShapeProbe(tokenizer, TEXTS, layers=[1], bands={"anisotropy/layer_2": (0, 1)})
    with pytest.raises(InputError, match="layer 2"):
        probe.check(make_model())


def test_a_band_may_count_layers_from_the_last(tokenizer, tmp_path):
    alerts = []
    probe = ShapeProbe(
        tokenizer,
        TEXTS,
        measures=["anisotropy"],
        layers=[-1],
        bands={"anisotropy/layer_-1": (2, 3)},
        alert=alerts.append,
        table=tmp_path / "shape.csv",
    )
    values = probe(make_model(), 0)
    (alert,) = alerts
    assert alert.layer == 3
    assert alert.value == values["shape/anisotropy/layer_3"]


def test_manifests_stand_beside_saved_checkpoints_and_change_no_training(tokenizer, tmp_path):
    options = {"save_strategy": "steps", "save_steps": 2}
    _, plain_training = train(make_model(), tokenizer, tmp_path / "plain", **options)
    callback = ShapeCallback(TEXTS, every=2, table=tmp_path / "shape.csv", manifest=True)
    _, watched_training = train(
        make_model(), tokenizer, tmp_path / "watched", callbacks=[callback], **options
    )
    assert_same_training(plain_training, watched_training)
    for step in (2, 4):
        folder = tmp_path / f"watched/checkpoint-{step}"
        manifest = read_manifest(folder)
        assert manifest.step == step
        assert not compare_with_manifest(folder, manifest).changed_names
        plain_names = {path.name for path in (tmp_path / f"plain/checkpoint-{step}").iterdir()}
        assert {path.name for path in folder.iterdir()} == plain_names | {MANIFEST}


def test_a_manifest_that_cannot_be_written_ends_no_training(tokenizer, tmp_path, caplog):
    """An adapter's checkpoint has no weights of a whole model."""
    model = peft.get_peft_model(make_model(), peft.LoraConfig(target_modules=["q_proj"]))
    callback = ShapeCallback(TEXTS, every=4, table=tmp_path / "shape.csv", manifest=True)
    options = {"save_strategy": "steps", "save_steps": 1}
    train(model, tokenizer, tmp_path / "run", callbacks=[callback], **options)
    assert sum("no manifest is written" in line.message for line in caplog.records) == 1


def test_the_table_has_the_sizes_of_hidden_states_by_default(tokenizer, tmp_path):
    probe = ShapeProbe(tokenizer, TEXTS, table=tmp_path / "shape.csv")
    probe(make_model(), 0)
    measures = set(pd.read_csv(tmp_path / "shape.csv")["estimator"])
    assert {"anisotropy", "mean_norm", "largest_coordinate", "kurtosis"} <= measures

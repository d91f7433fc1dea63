"""The table of massive tokens of a decoder in which one token is massive."""

import pytest
import transformers as hf

import dump_embeddings
import measure
import measure_checkpoint
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.embeddings.protocol import (
    CheckpointJob,
    DumpJob,
    ForwardFiles,
    MatrixProtocol,
    SamplingProtocol,
    Weights,
)
from shape_of_learning.embeddings.states import StateFiles
from shape_of_learning.files import read_rows
from shape_of_learning.metrics.protocol import MeasureJob, MeasuringProtocol
from shape_of_learning.metrics.registry import MEASURES
from shape_of_learning.metrics.tidy import MASSIVE_COLUMNS, name_layer_table, read_tidy
from tiny_models import TEXT, save_tiny_model

SAMPLING = SamplingProtocol(windows=24, window_characters=90, seed=0)
PROTOCOL = MeasuringProtocol("m", SAMPLING.windows, 0, batch_vectors=50, neighbours=5)
NAMES = ("anisotropy", "anisotropy_without_massive_tokens")
CONFIGURED_MEASURES = tuple(MEASURES[name].configure(name, {}) for name in NAMES)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Outputs of both ways of measuring a model in which the semicolon's embedding is long."""
    root = tmp_path_factory.mktemp("massive")
    folder, text = save_tiny_model(root / "model", "llama"), root / "text.txt"
    model = hf.AutoModel.from_pretrained(folder)
    (semicolon,) = hf.AutoTokenizer.from_pretrained(folder)(";")["input_ids"]
    model.get_input_embeddings().weight.data[semicolon] *= 1000
    model.save_pretrained(folder)
    text.write_text(" ".join(TEXT[:2] * 200))
    weights = Weights("m", "main", Shape("decoder", 3, 32, 32), is_download=False)
    matrices = MatrixProtocol((), points=False, massive=True, seed=0)
    dump = DumpJob(weights, SAMPLING, matrices)
    files = ForwardFiles(folder, folder, text)
    for way in ("dump", "memory"):
        (root / way).mkdir()
        states = "embeddings" if way == "dump" else "measurements"
        kinds = ("weights", "weight_points", "massive", "loss", "tensors", states)
        output = {kind: str(root / way / kind) for kind in kinds}
        if way == "dump":
            dump_embeddings.main(dump, files, output, threads=1)
        else:
            job = CheckpointJob(*dump, CONFIGURED_MEASURES, PROTOCOL)
            measure_checkpoint.main(job, files, output, threads=1)
    return root


def test_with_and_without_a_dump_the_table_is_the_same(folders):
    dump_table, memory_table = (
        (folders / way / "massive").read_bytes() for way in ("dump", "memory")
    )
    assert dump_table == memory_table


@pytest.mark.parametrize("layer", range(4))
def test_with_and_without_a_dump_the_same_tokens_are_left_out(folders, layer, tmp_path):
    job = MeasureJob(layer, 3, "isotropy", CONFIGURED_MEASURES, PROTOCOL)
    measure.main(job, folders / "dump/embeddings", tmp_path / "rows.csv")
    memory_file = name_layer_table(folders / "memory/measurements", "isotropy", layer)
    assert (tmp_path / "rows.csv").read_bytes() == memory_file.read_bytes()
    rows = read_tidy(memory_file)
    sizes = {
        name: sum(r.n for r in rows if r.estimator == name and r.batch is not None)
        for name in NAMES
    }
    # The semicolon is left out of the last layer, too, where it is no longer than other tokens.
    is_semicolon = StateFiles(folders / "dump/embeddings", 3).massive
    assert sizes[NAMES[0]] - sizes[NAMES[1]] == is_semicolon.sum() > 0


def test_the_table_says_which_tokens_are_massive_and_where(folders):
    table = read_rows(folders / "dump/massive", MASSIVE_COLUMNS)
    layers = [dict(zip(MASSIVE_COLUMNS, row, strict=True)) for row in table]
    assert [row["layer"] for row in layers] == ["0", "1", "2", "3"]
    rows = StateFiles(folders / "dump/embeddings", 3).rows
    tokenizer = hf.AutoTokenizer.from_pretrained(folders / "model")
    places = rows["positions"][[tokenizer.decode(t) == ";" for t in rows["token_ids"].tolist()]]
    assert {int(row["massive_in_any_layer"]) for row in layers} == {len(places)}
    for row in layers[:3]:
        assert row["tokens_found"] == f'";" ({len(places)})'
        highest_count = max(places.tolist().count(place) for place in places.tolist())
        assert row["positions"].partition("; ")[0].endswith(f"({highest_count})")
        assert (int(row["massive"]), int(row["n"])) == (len(places), len(rows["positions"]))
        assert float(row["massive_share"]) > 0.9
    # The final norm makes all vectors about as long.
    assert (layers[3]["massive"], layers[3]["tokens_found"]) == ("0", "")

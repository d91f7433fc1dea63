"""What the script of a rule refuses within its job."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

from shape_of_learning.metrics.table_columns import ESTIMATE_COLUMNS

# In place of a content: the digest of the file beside it.
ADD_DIGEST = b"(digest)"
SHAPE = {"role": "decoder", "layers": 3, "hidden_size": 32, "last_hidden_size": 32}
PROTOCOL = {"windows": 4, "window_characters": 40, "seed": 0, "precision": "float32"}
PROTOCOL |= {"last_layer": "after_final_norm"}


def _dump(**changes: object) -> tuple[str, ...]:
    given = {
        "model": "mine",
        "revision": "main",
        "checkpoint": "weights",
        "text": "text.txt",
        "protocol": json.dumps(PROTOCOL),
        "shape": json.dumps(SHAPE),
        "threads": 1,
        "output": "made/embeddings",
        "loss": "made/loss.csv",
        "tensors": "made/tensors.csv",
        **changes,
    }
    return ("dump_embeddings.py", *(f"--{name.replace('_', '-')}={v}" for name, v in given.items()))


def _clean(form: str, **changes: object) -> tuple[str, ...]:
    given = {
        "input": "corpus",
        "format": form,
        "text": "made/text.txt",
        "alphabet": "made/a.json",
        **changes,
    }
    return ("clean_corpus.py", *(f"--{name}={value}" for name, value in given.items()))


def _fetched(source: Mapping[str, object]) -> dict[str, str]:
    plumbing = {"corpus_sources": {"x": {"format": "text", **source}}}
    return {"SHAPE_OF_LEARNING_SETTINGS": json.dumps(plumbing)}


FETCH = ("fetch_corpus.py", "--source=x", "--output=made/x.raw", "--receipt=made/x.json")
FETCH_CHECKPOINT = (
    *(
        "fetch_checkpoint.py",
        "--model=mine",
        "--name=main",
        "--lock=lock.yaml",
        "--output=made/weights",
    ),
    f"--shape={json.dumps(SHAPE)}",
)
PINNED = (
    f"revisions: {{main: {{repository: a/b, revision: main, commit: {'a' * 40}, "
    f"files: {{model.safetensors: {{bytes: 1, hash: 'sha256:{'b' * 64}'}}}}}}}}"
)
ONE_FIGURE = json.dumps(
    {
        "models": [{"name": "mine", "label": "mine", "family": "mine", "role": "decoder"}],
        "measures": [
            {
                "name": "anisotropy",
                "label": "Anisotropy",
                "axis": "Anisotropy",
                "depends_on_n": False,
            }
        ],
        "options": {},
    }
)
DRAW = (
    *("draw_figure.py", "--function=shape_of_learning:profiles_by_role", f"--figure={ONE_FIGURE}"),
    *(
        "--caption=x",
        "--estimates=tables/estimates.csv",
        *("--output", "made/f.pdf", "made/f.png", "made/f.csv", "made/f.md"),
    ),
)
COLUMNS = ",".join(ESTIMATE_COLUMNS)


def _estimates(*rows: str) -> Mapping[str, bytes]:
    """A table with its digest, so that nothing but its content is wrong."""
    content = "".join(f"{row}\n" for row in rows).encode()
    return {"tables/estimates.csv": content, "tables/estimates.csv.sha256": ADD_DIGEST}


def _archive(*records: Mapping[str, object]) -> bytes:
    """A tar archive of a list of records."""
    content, file = json.dumps(records).encode(), io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo("all.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _labelled(*labels: object) -> Mapping[str, bytes]:
    """The archive of a task with texts of these labels."""
    return {
        "x.archive": _archive(*({"t": f"text {n}", "l": label} for n, label in enumerate(labels)))
    }


def _task(files: Mapping[str, bytes], **changes: object) -> tuple[str, ...]:
    entry = {"urls": ["x.tar"], "sha256": hashlib.sha256(files["x.archive"]).hexdigest()}
    entry |= {"member": "all.json", "format": "json", "text": "t", "label": "l", **changes}
    made = ("--archive=x.archive", "--output=made/x.csv", "--seed=0")
    return ("make_task.py", "--task=x", f"--entry={json.dumps(entry)}", *made)


CLASSES = _labelled(*[0, 1] * 20)


# Of a folder `weights` with a model that runs, and of `text.txt`: name -> the changes (a mapping changes keys
# of JSON, bytes replace a file, None removes it), the script and its arguments, and the sentence.
JOBS: dict[str, tuple[Mapping[str, object], tuple[str, ...], str]] = {
    "tokens that the model does not know": (
        {"weights": {"vocab_size": 200}},
        _dump(),
        "but the model there has embeddings for 200 tokens",
    ),
    "an archive of another hash": (
        {"x.tar": CLASSES["x.archive"]},
        _task(CLASSES, sha256="0" * 64),
        "sha256",
    ),
    "an archive without the member": (
        CLASSES,
        _task(CLASSES, member="one.json"),
        "the archive holds all.json, not 'one.json'; correct `member`",
    ),
    "a label column that is absent": (
        CLASSES,
        _task(CLASSES, label="label"),
        "there is no column `label`, which its entry gives as `label`",
    ),
    "labels that are constant": (
        _labelled(*[1] * 40),
        _task(_labelled(*[1] * 40)),
        "the labels of the split `train` are constant, all 1",
    ),
    "a grade that is no number": (
        _labelled(0.5, "good"),
        _task(_labelled(0.5, "good"), metric="spearman"),
        "the label of record 2 is 'good', which is no number; correct `label`",
    ),
    "a split without examples": (
        _labelled(0, 1),
        _task(_labelled(0, 1)),
        "the split `held_out` has no examples",
    ),
    "quantised weights in a job": (
        {"weights/config.json": {"quantization_config": {"quant_method": "bitsandbytes"}}},
        _dump(),
        "has a `quantization_config`",
    ),
    "heads that do not divide the width of a model": (
        {"weights/config.json": {"num_attention_heads": 5}},
        _dump(),
        "the checkpoint in weights cannot be loaded (",
    ),
    "more rotated dimensions than there are": (
        {
            "weights/config.json": {
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 10000.0,
                    "partial_rotary_factor": 3.0,
                }
            }
        },
        _dump(),
        "the model does not run",
    ),
    **{
        name: ({"weights/config.json": changes}, _dump(), "cannot be loaded")
        for name, changes in {
            "no heads": {"num_attention_heads": 0},
            "heads that are words": {"num_attention_heads": "two"},
            "an unknown architecture": {"model_type": "novel"},
            "an activation that there is not": {"hidden_act": "x"},
            "a negative vocabulary": {"vocab_size": -3},
            "another inner width than the weights'": {"intermediate_size": 8},
        }.items()
    },
    "another width than the entry's": (
        {},
        _dump(shape=json.dumps({**SHAPE, "hidden_size": 64})),
        "for `hidden_size` config.json of the checkpoint says 32 where the entry says 64",
    ),
    "a layer more than there are weights": (
        {"weights/config.json": {"num_hidden_layers": 4}},
        _dump(shape=json.dumps({**SHAPE, "layers": 4})),
        "lacks 12 weights",
    ),
    "no config.json": ({"weights/config.json": None}, _dump(), "is missing or no JSON object"),
    "a page for config.json": (
        {"weights/config.json": b"<html>"},
        _dump(),
        "is missing or no JSON object",
    ),
    "no weights": ({"weights/model.safetensors": None}, _dump(), "weights holds no weights"),
    "weights cut short": (
        {"weights/model.safetensors": b"\x10\x00\x00"},
        _dump(),
        "holds no weights that can be read",
    ),
    "a page for weights": (
        {"weights/model.safetensors": b"<html>" * 99},
        _dump(),
        "holds no weights that can be read",
    ),
    "no tokenizer": ({"weights/tokenizer.json": None}, _dump(), "there is no file of a vocabulary"),
    "a page for a tokenizer": (
        {"weights/tokenizer.json": b"<html>"},
        _dump(),
        "the tokenizer in weights cannot",
    ),
    "a tokenizer of another kind": (
        {"weights/tokenizer.json": b"[]"},
        _dump(),
        "the tokenizer in weights cannot",
    ),
    "windows longer than the context": (
        {},
        _dump(protocol=json.dumps({**PROTOCOL, "window_characters": 900, "windows": 1})),
        "was made for 128; lower `sampling.window_characters`",
    ),
    "a text too short": ({"text.txt": b"short"}, _dump(), "sampling.windows"),
    "no text": ({"text.txt": None}, _dump(), "text.txt"),
    "a text that is no UTF-8": ({"text.txt": b"\xff" * 999}, _dump(), "text.txt"),
    "a folder that may not be written": ({"made": b""}, _dump(), "made"),
    "an export that is none": ({"corpus": b"plain words"}, _clean("mediawiki"), "corpus"),
    "no corpus": ({}, _clean("text"), "corpus"),
    "an empty corpus": ({"corpus": b""}, _clean("text"), "corpus"),
    "a lock that is not there": (
        {},
        FETCH_CHECKPOINT,
        "cannot be fetched, since lock.yaml does not have it",
    ),
    "a lock without the revision": (
        {"lock.yaml": b"revisions: {}"},
        FETCH_CHECKPOINT,
        "cannot be fetched, since lock.yaml does not have it",
    ),
    "a lock that is none": ({"lock.yaml": b"[]"}, FETCH_CHECKPOINT, "lock.yaml is no lock file"),
    "a download offline": (
        {"lock.yaml": PINNED.encode()},
        FETCH_CHECKPOINT,
        "HF_HUB_OFFLINE forbids to ask for it",
    ),
    "no table": ({}, DRAW, "tables/estimates.csv is missing"),
    "a table without its digest": (
        {"tables/estimates.csv": COLUMNS.encode()},
        DRAW,
        "tables/estimates.csv has no .sha256 beside it",
    ),
    "an empty table": (_estimates(), DRAW, "tables/estimates.csv cannot be read"),
    "a table without rows": (_estimates(COLUMNS), DRAW, "tables/estimates.csv has 0 rows"),
    "a table of other columns": (
        _estimates("a,b", "1,2"),
        DRAW,
        "tables/estimates.csv has 1 rows of the columns a, b",
    ),
    "a table of words": (
        _estimates(COLUMNS, "mine,decoder,main,,,0,0,anisotropy,all,many,,,,,9,9,,4"),
        DRAW,
        "tables/estimates.csv cannot be read",
    ),
    "a table of another model": (
        _estimates(COLUMNS, "other,decoder,main,,,0,0,anisotropy,all,0.5,,,,,9,9,,4"),
        DRAW,
        "tables/estimates.csv has no model 'mine'",
    ),
}
# Name -> the source, and the sentence.
FETCHED: dict[str, tuple[Mapping[str, object], str]] = {
    "a corpus that is not there": ({"urls": ["nowhere.txt"]}, "nowhere.txt"),
    "a corpus of another hash": ({"urls": ["text.txt"], "sha256": "0" * 64}, "sha256"),
    "a corpus of another size": ({"urls": ["text.txt"], "bytes": 3}, "bytes"),
    "a corpus by an unknown protocol": ({"urls": ["gopher://x/y"]}, "gopher"),
}
ENDPOINTS = {
    "an endpoint that is no address": "hub",
    "an endpoint of files": "file:///etc",
    "half an endpoint": "http://[::1",
    "an endpoint of no port": "http://hub:words",
}
VARIABLES = {
    **{name: _fetched(source) for name, (source, _) in FETCHED.items()},
    **{name: {"HF_ENDPOINT": address} for name, address in ENDPOINTS.items()},
}

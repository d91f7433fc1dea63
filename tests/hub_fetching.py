"""Models for a Hub on loopback, and processes that ask it: its client reads its settings once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
import transformers

LAYERS, WIDTH = 2, 16
WORKFLOW = Path(__file__).parents[1] / "workflow"
# Pauses are a hundredth of what they are.
HURRIED = """
import json, sys, time
from pathlib import Path
from shape_of_learning.checkpoints import contact
from shape_of_learning.errors import InputError
contact.SILENCE_SECONDS = 120  # a busy machine is no silent server
sleep = time.sleep
time.sleep = lambda seconds: sleep(seconds / 100)
what, given = json.loads(sys.argv[1])
try:
    if what == "fetch":
        from shape_of_learning.checkpoints.download import fetch
        from shape_of_learning.checkpoints.job import DownloadJob
        from shape_of_learning.checkpoints.lock import LockedRevision
        from shape_of_learning.checkpoints.shapes import Shape
        pinned, tokenizer = (
            given[name] and LockedRevision(**given[name]) for name in ("pinned", "tokenizer")
        )
        job = DownloadJob("tiny", "main", pinned, tokenizer, Shape(**given["shape"]))
        fetch(job, Path(given["output"]))
        print("null")
    elif what == "named":
        from shape_of_learning.checkpoints.local import find_checkpoint_folder
        print(json.dumps(str(find_checkpoint_folder(**given)[1])))
    else:
        from shape_of_learning.checkpoints.lock import Place
        from shape_of_learning.checkpoints.hub import resolve
        found, mains = resolve({"it": Place(*given["place"])}, given["mains"], where="model `tiny`")
        print(json.dumps([found["it"].model_dump(), {n: m.model_dump() for n, m in mains.items()}]))
except InputError as error:
    sys.exit(str(error))
"""


def save_model(
    folder: Path, *, seed: int, form: str, hidden_size: int = WIDTH, shard_size: str = "15KB"
) -> Path:
    """Save a random model as `safetensors`, in `shards` of these, as `bin`, or `both` whole."""
    torch.manual_seed(seed)
    model = transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(
            vocab_size=300,
            hidden_size=hidden_size,
            num_hidden_layers=LAYERS,
            num_attention_heads=2,
            intermediate_size=2 * hidden_size,
        )
    )
    if form in ("safetensors", "both"):
        model.save_pretrained(folder)
    if form == "shards":
        model.save_pretrained(folder, max_shard_size=shard_size)
    if form in ("bin", "both"):
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def environment(endpoint: str, folder: Path, **more: str) -> dict[str, str]:
    """No settings of the user's own; the Hugging Face cache is in `folder`."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    settings = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": f"{WORKFLOW}{os.pathsep}{WORKFLOW / 'scripts'}",
    }
    return own | settings | more


def asking(endpoint: str, folder: Path, what: str, given: dict, **settings: str):
    """What a process makes of a Hub, as JSON, or the sentence that refuses; no process shows its token."""
    done = subprocess.run(
        [sys.executable, "-c", HURRIED, json.dumps([what, given])],
        env=environment(endpoint, folder, **settings),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    token = settings.get("HF_TOKEN")
    assert not token or token not in done.stderr
    if done.returncode:
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr.strip()
    return json.loads(done.stdout.splitlines()[-1])


def resolved(endpoint: str, folder: Path, *place: str, mains=(), **settings: str):
    """The revision and the main branches, or the sentence that refuses."""
    given = {"place": place, "mains": list(mains)}
    return asking(endpoint, folder, "resolve", given, **settings)

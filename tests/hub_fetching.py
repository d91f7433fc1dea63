"""Models for a Hub on loopback, and processes that ask it.

Each test asks in a process of its own, since the client reads its settings once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
import transformers

LAYERS, WIDTH = 2, 16
WORKFLOW = Path(__file__).parents[1] / "workflow"
# The program of a process, with pauses that are a hundred times as short.
PROGRAM = """
import json, sys, time
from pathlib import Path
from shape_of_learning.checkpoints import contact
from shape_of_learning.errors import InputError
contact.SILENCE_SECONDS = 120  # a busy machine is no silent server
sleep = time.sleep
time.sleep = lambda seconds: sleep(seconds / 100)
task, arguments = json.loads(sys.argv[1])
try:
    if task == "fetch":
        from shape_of_learning.checkpoints.download import fetch
        from shape_of_learning.checkpoints.job import DownloadJob
        from shape_of_learning.checkpoints.lock import LockedRevision
        from shape_of_learning.checkpoints.shapes import Shape
        weights, tokenizer = (
            arguments[name] and LockedRevision(**arguments[name]) for name in ("weights", "tokenizer")
        )
        job = DownloadJob("tiny", "main", weights, tokenizer, Shape(**arguments["shape"]))
        fetch(job, Path(arguments["output"]))
        print("null")
    elif task == "find":
        from shape_of_learning.checkpoints.local import find_checkpoint_folder
        print(json.dumps(str(find_checkpoint_folder(**arguments)[1])))
    else:
        from shape_of_learning.checkpoints.lock import Place
        from shape_of_learning.checkpoints.hub import resolve
        place = Place(*arguments["place"])
        revisions, mains = resolve({"it": place}, arguments["mains"], where="model `tiny`")
        mains = {name: main.model_dump() for name, main in mains.items()}
        print(json.dumps([revisions["it"].model_dump(), mains]))
except InputError as error:
    sys.exit(str(error))
"""


def save_model(
    folder: Path, *, seed: int, form: str, hidden_size: int = WIDTH, shard_size: str = "15KB"
) -> Path:
    """Save a random model in a form: `safetensors`, `shards` of these, `bin`, or `both` in one file each."""
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


def make_environment(endpoint: str, folder: Path, **more: str) -> dict[str, str]:
    """Return variables without the user's settings; the Hugging Face cache is in `folder`."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    settings = {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": f"{WORKFLOW}{os.pathsep}{WORKFLOW / 'scripts'}",
    }
    return variables | settings | more


def ask_hub(endpoint: str, folder: Path, task: str, arguments: dict, **settings: str):
    """Run a task in a process and return its JSON, or the sentence that refuses; the token must not be printed."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([task, arguments])],
        env=make_environment(endpoint, folder, **settings),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in process.stderr, process.stderr
    token = settings.get("HF_TOKEN")
    assert not token or token not in process.stderr
    if process.returncode:
        assert process.stderr.count("\n") == 1, process.stderr
        return process.stderr.strip()
    return json.loads(process.stdout.splitlines()[-1])


def resolve_on_hub(endpoint: str, folder: Path, *place: str, mains=(), **settings: str):
    """Return the revision and the main branches, or the sentence that refuses."""
    arguments = {"place": place, "mains": list(mains)}
    return ask_hub(endpoint, folder, "resolve", arguments, **settings)

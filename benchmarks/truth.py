"""Estimators of the intrinsic dimension on hidden states whose dimension is known.

    make benchmark-truth

A window is a smooth function of d latent variables: two token embeddings, each moved along d directions of its own. So
the hidden states of one position are a smooth image of R^d in every layer. docs/explanation/truth.md shows the results,
which go to benchmarks/results/truth.csv and docs/explanation/truth.png.
"""

import csv
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import torch

import shape_of_learning as sol
from shape_of_learning.checkpoints.local import find_local_checkpoint
from shape_of_learning.embeddings.model import load_model
from shape_of_learning.figures import style
from shape_of_learning.files import read_yaml

HERE = Path(__file__).parent
RESULTS = HERE / "results/truth.csv"
PICTURE = HERE.parent / "docs/explanation/truth.png"
ENTRIES = HERE.parent / "config/models/demo.yaml"
MODELS = ("minilm-l6", "smollm2-135m-4bit")
DIMENSIONS = (2, 5, 10, 20)
SIZES = (1024, 4096)
TOKENS = 2  # positions of a window
SHARE = 0.5  # the length of a move, over the distance of a token embedding from the mean of all
LAYERS = 7  # evenly spaced, with the first and the last
WINDOWS = 256  # in a batch
POINTS, STEP = 4, 1e-4  # at which derivatives are taken, and the step in a latent variable
NEIGHBOURS = 100
ESTIMATORS = ("TwoNN", "MADA", "MADA, median", "MOM", "MLE", "Gride")
COLUMNS = ("model", "layer", "d", "n", "library", "estimator", "value", "bias", "condition")


def make_directions(embeddings: torch.Tensor, d: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw the token embeddings of the window, (TOKENS, width), and the directions of each, (TOKENS, d, width)."""
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(len(embeddings), (TOKENS,), generator=random)
    width = embeddings.shape[1]
    directions, _ = torch.linalg.qr(torch.randn(TOKENS, width, d, generator=random))
    length = SHARE * (embeddings - embeddings.mean(0)).square().sum(1).mean().sqrt() / d**0.5
    return embeddings[tokens], length * directions.transpose(1, 2)


@torch.no_grad()
def compute_states(
    model: torch.nn.Module, latents: torch.Tensor, window: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """Compute the hidden states of the last position, (layers, n, width)."""
    start, directions = (part.to(latents.dtype) for part in window)
    batches = []
    for batch in latents.split(WINDOWS):
        embeddings = start + torch.einsum("nd,tdw->ntw", batch, directions)
        states = model(inputs_embeds=embeddings, output_hidden_states=True).hidden_states
        batches.append(torch.stack([states[layer][:, -1] for layer in choose_layers(len(states))]))
    return torch.cat(batches, dim=1)


def choose_layers(count: int) -> list[int]:
    """Choose evenly spaced layers from the first to the last."""
    return np.linspace(0, count - 1, min(LAYERS, count)).round().astype(int).tolist()


def find_condition(
    model: torch.nn.Module, latents: torch.Tensor, window: tuple[torch.Tensor, torch.Tensor]
) -> np.ndarray:
    """Return the condition of the derivative of each layer by the latents, the median of points.

    If it is finite, the derivative has rank d, and the image has dimension d near these points.
    """
    d, conditions = latents.shape[1], []
    for point in latents[:POINTS]:
        moves = STEP * torch.eye(d, dtype=torch.float64)
        ends = torch.cat([point + moves, point - moves])
        above, below = compute_states(model, ends, window).chunk(2, dim=1)
        values = torch.linalg.svdvals((above - below) / (2 * STEP))
        conditions.append((values[:, 0] / values[:, -1]).numpy())
    return np.median(conditions, axis=0)


def estimate(X: np.ndarray) -> dict[str, float]:
    """Estimate the dimension by our estimators, from one search for neighbours."""
    r = sol.nearest_distances(X, NEIGHBOURS)
    median = sol.mada(r, combine="median")
    values = (sol.two_nn(r), sol.mada(r), median, sol.mom(r), sol.mle(r), sol.gride(r, n1=8))
    return dict(zip(ESTIMATORS, values, strict=True))


def estimate_by_scikit_dimension(X: np.ndarray) -> dict[str, float]:
    """Estimate the dimension by scikit-dimension, with as many neighbours as ours."""
    import skdim

    settings: dict[str, dict[str, int]] = {"MOM": {"n_neighbors": NEIGHBOURS}}
    return {
        name: float(getattr(skdim.id, name)().fit(X, **settings.get(name, {})).dimension_)
        for name in ("TwoNN", "MADA", "MOM", "MLE")
    }


def estimate_by_dadapy(python: str, clouds: Sequence[np.ndarray]) -> list[dict[str, float]]:
    """Estimate the dimension of each cloud by DADApy, in the environment of another interpreter."""
    with TemporaryDirectory() as folder:
        files = [Path(folder, f"{place}.npy") for place in range(len(clouds))]
        for file, X in zip(files, clouds, strict=True):
            np.save(file, X)
        command = [python, HERE / "dadapy_estimates.py", *files]
        words = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(json.loads(words.splitlines()[-1]))


def measure_model(name: str, dadapy: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of one model."""
    entry = read_yaml(ENTRIES)[name]
    options = {"role": entry["role"], "precision": "float32", "device": torch.device("cpu")}
    model, _ = load_model(find_local_checkpoint(entry["path"]), **options)
    embeddings = model.get_input_embeddings().weight.detach()
    random = np.random.default_rng(0)
    for d in DIMENSIONS:
        window = make_directions(embeddings, d)
        latents = torch.from_numpy(random.normal(size=(max(SIZES), d)))
        states = compute_states(model.float(), latents.float(), window).double().numpy()
        conditions = find_condition(model.double(), latents, window)
        numbers = choose_layers(model.config.num_hidden_layers + 1)
        estimates = [
            (place, n, "this one", estimate(X[:n])) for n in SIZES for place, X in enumerate(states)
        ]
        # The other libraries are slower, so they measure both ends of the model and fewer vectors.
        ends, n = [0, len(numbers) - 1], min(SIZES)
        dadapy_estimates = estimate_by_dadapy(dadapy, states[ends, :n])
        for place, values in zip(ends, dadapy_estimates, strict=True):
            scikit_dimension_estimates = estimate_by_scikit_dimension(states[place, :n])
            estimates.append((place, n, "scikit-dimension", scikit_dimension_estimates))
            estimates.append((place, n, "DADApy", values))
        for place, n, library, values in estimates:
            for estimator, value in values.items():
                row = (name, numbers[place], d, n, library, estimator, f"{value:.3f}")
                yield *row, f"{value - d:.3f}", f"{conditions[place]:.1f}"
        print(f"{name}, d = {d}: done", flush=True)


def draw(rows: list[tuple[str, ...]]) -> None:
    """Draw the estimates by layer, a panel per model, a colour per estimator."""
    with style.use_theme():
        figure, panels = plt.subplots(1, len(MODELS), figsize=(style.TEXT_WIDTH, 3), sharey=True)
        for axes, model in zip(panels, MODELS, strict=True):
            for d in DIMENSIONS:
                axes.axhline(d, color="0.6", linewidth=0.6, linestyle=(0, (1, 1)))
                for place, estimator in enumerate(ESTIMATORS):
                    key = (model, str(d), str(max(SIZES)), "this one", estimator)
                    points = [(row[1], row[6]) for row in rows if (row[0], *row[2:6]) == key]
                    look = {"color": style.COLOURS[place], "marker": style.MARKERS[place]}
                    label = estimator if d == min(DIMENSIONS) else "_"
                    axes.plot(*np.array(points, float).T, label=label, **look)
            axes.set(title=read_yaml(ENTRIES)[model]["label"], xlabel="Layer", ylim=(0, None))
        panels[0].set(ylabel="Estimated dimension", yticks=DIMENSIONS)
        handles = panels[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper right", ncols=len(ESTIMATORS))
        figure.savefig(PICTURE, dpi=150)


def main(dadapy: str) -> None:
    """Measure both models, and write table and picture; `dadapy` is the Python that has DADApy."""
    warnings.simplefilter("ignore")
    with RESULTS.open("w", newline="", buffering=1) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in MODELS:
            writer.writerows(measure_model(name, dadapy))
    with RESULTS.open(newline="") as file:
        draw([tuple(row) for row in csv.reader(file)][1:])


if __name__ == "__main__":
    main(sys.argv[1])

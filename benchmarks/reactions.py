"""Measure two fine-tunings that others published, for the paper on fine-tuning, on chemical reactions.

    pip install --no-deps rxnfp==0.1.0
    python -m benchmarks.reactions FOLDER

The package (MIT) has a BERT of 12 blocks of 256, pretrained on reactions, and two models that began with it and learned
the class of a reaction. They are measured as a fine-tuning of this workflow is, on reactions that are written here:
each of eight classes joins two fragments of a list. The script prints the numbers of each model and the three claims.

One model family of one field shows no rule. Both fine-tunings are on other data and other classes than these, so they
stand for two seeds of one task only in that both learned to tell reactions apart.
"""

import json
import shutil
import sys
from importlib.metadata import distribution
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file
from threadpoolctl import threadpool_limits
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing

from papers.finetuning.columns import TASK_COLUMNS
from papers.finetuning.job import TaskJob
from papers.finetuning.measure_on_task import main as measure_on_task
from shape_of_learning.checkpoints.shapes import Shape
from shape_of_learning.claims.claim import EvidenceModel
from shape_of_learning.claims.evidence import Evidence
from shape_of_learning.claims.judgement import Judgement, judge
from shape_of_learning.embeddings.protocol import SamplingProtocol
from shape_of_learning.plan.papers import read_papers
from shape_of_learning.tasks.examples import Example, Task, write_task

PAPERS = Path(__file__).parents[1] / "workflow/papers"
PAIRS = 64  # pairs of fragments
PRETRAINED_MODEL = "bert_pretrained"
FINETUNED_MODELS = ("bert_ft", "bert_ft_10k_25s")
# An atom in brackets, an element, a bond, a ring or a branch: a token of the vocabulary.
ATOM = r"\[[^\]]+\]|Br|Cl|>>|%[0-9]{2}|."
# The first atom of a fragment is bound to the text before it, the last atom to the text after it.
RESTS = ["C", "CC", "CCC", "C(C)C", "CCCC", "CC(C)C", "C1CCCCC1", "C1CCCC1", "C1CC1", "CCOC", "Cc1ccccc1",
         "Cc1ccc(Cl)cc1", "CC1CCCCC1", "CCN(C)C", "CCc1ccccc1", "CC1CC1"]  # fmt: skip
RINGS = ["c1ccccc1", "c1ccc(C)cc1", "c1ccc(F)cc1", "c1ccc(OC)cc1", "c1ccc(Cl)cc1", "c1cccnc1", "c1ccncc1",
         "c1cccc(C)c1", "c1cccc(F)c1", "c1ccc2ccccc2c1", "c1ccc(C#N)cc1", "c1ccc(CC)cc1", "c1cccc(OC)c1",
         "c1ccsc1", "c1ccoc1", "c1cncnc1"]  # fmt: skip
CLASSES = [
    "{ring}C(=O)O.O{rest}>>{ring}C(=O)O{rest}",  # an ester from an acid
    "{ring}C(=O)O.N{rest}>>{ring}C(=O)N{rest}",  # an amide from an acid
    "{ring}C(=O)Cl.N{rest}>>{ring}C(=O)N{rest}",  # an amide from a chloride
    "{ring}S(=O)(=O)Cl.N{rest}>>{ring}S(=O)(=O)N{rest}",  # a sulfonamide
    "{ring}C=O.N{rest}>>{ring}CN{rest}",  # an amine from an aldehyde
    "{ring}O.Br{rest}>>{ring}O{rest}",  # an ether
    "{ring}C(=O)O{rest}>>{ring}C(=O)O",  # an acid from an ester
    "CC(C)(C)OC(=O)N({rest}){ring}>>N({rest}){ring}",  # a protecting group that leaves
]


def make_task(seed: int) -> Task:
    """Make reactions of all classes; a pair of fragments is on one side of the split in all of them."""
    pairs = list(product(RINGS, RESTS))
    order = np.random.default_rng(seed).permutation(len(pairs))[:PAIRS]
    examples = []
    for place, number in enumerate(order):
        ring, rest = pairs[number]
        split = "train" if place < 0.75 * PAIRS else "held_out"
        for label, reaction in enumerate(CLASSES):
            text = reaction.format(ring=ring, rest=rest)
            examples.append(Example(split, label, f"{ring}.{rest}", text))
    return Task("accuracy", examples)


def write_checkpoint(source: Path, vocabulary: Path, folder: Path) -> None:
    """Write a model of the package in today's format of Hugging Face."""
    folder.mkdir(parents=True)
    config = json.loads((source / "config.json").read_text())
    config |= {"model_type": "bert", "architectures": ["BertModel"]}
    (folder / "config.json").write_text(json.dumps(config))
    weights = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    encoder = {
        name.removeprefix("bert."): tensor.contiguous()
        for name, tensor in weights.items()
        if name.removeprefix("bert.").startswith(("embeddings", "encoder", "pooler"))
        and not name.endswith("position_ids")
    }
    save_file(encoder, folder / "model.safetensors", metadata={"format": "pt"})
    words = {word: number for number, word in enumerate(vocabulary.read_text().split())}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Split(Regex(ATOM), "isolated")
    ends = [(word, words[word]) for word in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def measure_model(name: str, folder: Path, task: Path) -> list[Path]:
    """Write the paper's tables of a fine-tuning whose checkpoints are in `folder`."""
    tables = [folder.parent / table / f"{name}.csv" for table in TASK_COLUMNS]
    for table in tables:
        table.parent.mkdir(exist_ok=True)
    checkpoints = (("step0", 0), ("step1", 1))
    job = TaskJob(name, checkpoints, Shape("encoder", 12, 256, 256), SamplingProtocol(0, 0, seed=0))
    with threadpool_limits(1):  # as the workflow's job
        measure_on_task(job, folder, task, tables, torch.get_num_threads())
    return tables


def judge_claims(folder: Path) -> dict[str, Judgement]:
    """Judge the claims of the paper by the tables of both fine-tunings."""
    models = {
        name: EvidenceModel(
            name,
            "encoder",
            12,
            kind="fine_tuning",
            origin="rxnfp",
            treatment="reactions",
            width=256,
        )
        for name in FINETUNED_MODELS
    }
    tables = {
        table: pd.concat(pd.read_csv(folder / table / f"{name}.csv") for name in FINETUNED_MODELS)
        for table in TASK_COLUMNS
    }
    (paper,) = (paper for paper in read_papers(PAPERS) if paper.name == "finetuning")
    evidence = Evidence(models, tables=tables)
    return {name: judge(claim, evidence) for name, claim in paper.claims.items()}


def measure_reactions(folder: Path) -> dict[str, Judgement]:
    """Measure both fine-tunings, with their tables below `folder`, and judge the claims."""
    models = Path(str(distribution("rxnfp").locate_file("rxnfp/models/transformers")))
    vocabulary = models / PRETRAINED_MODEL / "vocab.txt"
    task = folder / "reactions.csv"
    folder.mkdir(parents=True, exist_ok=True)
    write_task(task, make_task(seed=0))
    for name in FINETUNED_MODELS:
        shutil.rmtree(folder / name, ignore_errors=True)
        write_checkpoint(models / PRETRAINED_MODEL, vocabulary, folder / name / "step0")
        write_checkpoint(models / name, vocabulary, folder / name / "step1")
        measure_model(name, folder / name, task)
    return judge_claims(folder)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    judgements = measure_reactions(place)
    for table, key in {
        "finetuning_layers": "estimator",
        "finetuning_structure": "quantity",
    }.items():
        for model in FINETUNED_MODELS:
            rows = pd.read_csv(place / table / f"{model}.csv")
            last = rows[rows["layer"] == rows["layer"].max()]
            print(model, last.pivot_table("value", key, "step").round(3), sep="\n", end="\n\n")
    for claim, judgement in judgements.items():
        print(f"{claim}: {judgement.verdict}. {judgement.because}")

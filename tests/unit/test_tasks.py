"""Tasks: labels by construction, splits without leaks, archives as they are, probes as they should be."""

import io
import json
import random
import tarfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import requests
import torch
import yaml
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import matthews_corrcoef
from tokenizers import processors
from transformers import AutoModel, AutoTokenizer

from mirrors import Mirror, served
from shape_of_learning.embeddings.text_vectors import text_vectors
from shape_of_learning.errors import InputError
from shape_of_learning.estimators.frequency_bands import frequency_bands
from shape_of_learning.estimators.share_between import share_between
from shape_of_learning.script_arguments.protocol import SamplingProtocol
from shape_of_learning.tasks import archives
from shape_of_learning.tasks.builtin import KINDS, builtin_task
from shape_of_learning.tasks.examples import Example, Task, checked, read_task, write_task
from shape_of_learning.tasks.measured import (
    SplitVectors,
    layer_rows,
    probe_rows,
    spectra_of,
    spectrum_rows,
    structure_rows,
)
from shape_of_learning.tasks.pooling import features, mean_pooled
from shape_of_learning.tasks.probe import PENALTY, fit_probe
from shape_of_learning.tasks.scores import accuracy, matthews, spearman
from shape_of_learning.tasks.sources import make_task
from tiny_models import save_tiny_model

SPLITS = ("train", "held_out")
REPOSITORY = Path(__file__).parents[2]
PROTOCOL = SamplingProtocol(0, 0, 0)
SHAPE = {"role": "encoder", "layers": 3, "hidden_size": 32, "last_hidden_size": 32}


@pytest.fixture(scope="module")
def corpus():
    """Articles of different lengths in words of their own, some sentences being in several paragraphs."""
    numbers = random.Random(3)
    common = [f"word{i}" for i in range(300)]
    repeated = "This is a sentence that stands in very many of the paragraphs."
    articles = []
    for article in range(40):
        words = common + [f"own{article}x{i}" for i in range(30)]
        paragraphs = [f"Title {article}"]
        for _ in range(6 + 2 * (article % 9)):
            sentences = [
                " ".join(numbers.choices(words, k=numbers.randint(6, 14))).capitalize() + "."
                for _ in range(numbers.randint(1, 5))
            ]
            paragraphs.append(" ".join([*sentences, repeated][:: numbers.choice((1, -1))]))
        articles.append("\n".join(paragraphs) + "\n")
    return "\n".join(articles)


def groups(task, split):
    return {
        g for e in task.split(split) for g in (e.group.split() if task.has_pairs else [e.group])
    }


def texts(task, split):
    return {text for e in task.split(split) for text in (e.text, e.text_2) if text}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 17])
def test_no_paragraph_article_or_sentence_is_on_both_sides_of_a_split(kind, seed, corpus):
    task = builtin_task(kind, corpus, seed=seed, most={}, corpus="c")
    assert not groups(task, "train") & groups(task, "held_out")
    assert not texts(task, "train") & texts(task, "held_out")
    for split in SPLITS:
        labels = [example.label for example in task.split(split)]
        assert labels.count(0) == labels.count(1) > 0


def test_groups_are_the_paragraphs_and_articles_of_the_corpus(corpus):
    articles = [article.splitlines() for article in corpus.split("\n\n")]
    for kind in ("topic", "same_article"):
        task = builtin_task(kind, corpus, seed=0, most={}, corpus="c")
        for e in task.examples:
            if kind == "topic":
                article, paragraph = map(int, e.group.split("/"))
                assert e.text in articles[article][paragraph]
                continue
            found = [
                next(n for n, lines in enumerate(articles) if text in "\n".join(lines))
                for text in (e.text, e.text_2)
            ]
            assert set(map(str, found)) == set(e.group.split())
            assert e.label == (found[0] == found[1])


def test_topic_is_of_the_eight_longest_articles_four_of_each_label(corpus):
    task = builtin_task("topic", corpus, seed=0, most={}, corpus="c")
    label_of = {e.group.split("/")[0]: e.label for e in task.examples}
    lengths = [len(article) for article in corpus.split("\n\n")]
    longest = sorted(range(len(lengths)), key=lambda number: -lengths[number])[:8]
    assert set(label_of) == set(map(str, longest))
    assert sorted(label_of.values()) == [0] * 4 + [1] * 4
    for split in SPLITS:
        assert {e.group.split("/")[0] for e in task.split(split)} == set(label_of)


def test_a_shifted_bigram_is_two_neighbours_swapped_and_nothing_else(corpus):
    task = builtin_task("bigram_shift", corpus, seed=0, most={}, corpus="c")
    whole = " ".join(corpus.split())
    for e in task.examples:
        words = e.text.split()
        swapped = [
            " ".join([*words[:i], words[i + 1], words[i], *words[i + 2 :]])
            for i in range(len(words) - 1)
        ]
        assert (e.text in whole) == (e.label == 0)
        assert e.label == 0 or any(text in whole for text in swapped)


def test_equal_seeds_give_equal_bytes_and_others_another_split(corpus, tmp_path):
    written = []
    for number, seed in enumerate((0, 0, 1)):
        path = tmp_path / str(number) / "topic.csv"
        write_task(path, builtin_task("topic", corpus, seed=seed, most={"train": 60}, corpus="c"))
        written.append(path.read_bytes())
        assert json.loads(path.with_suffix(".json").read_text())["train"] == 60
    assert written[0] == written[1] != written[2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_too_short_is_named_with_the_remedy(kind, corpus):
    few = "\n\n".join(corpus.split("\n\n")[:5])
    short = "\n\n".join(["Title\nOne long sentence of some more words stands here alone."] * 9)
    for text, reason in ((few, "has 5 articles"), (short, "is too short for the task")):
        with pytest.raises(InputError, match=reason) as error:
            builtin_task(kind, text, seed=0, most={}, corpus="corpus/text.txt")
        assert "corpus.first_bytes" in str(error.value)


def test_a_task_is_read_as_it_was_written(tmp_path):
    pairs = [
        Example(split, label, f"{split}{label}", 'a "b", c', "d\u2028e, 1")
        for split in SPLITS
        for label in (0.1, -3.875)
    ]
    write_task(tmp_path / "graded.csv", Task("spearman", pairs))
    assert read_task(tmp_path / "graded.csv") == Task("spearman", pairs)
    (tmp_path / "graded.csv").write_bytes((tmp_path / "graded.csv").read_bytes() + b"x")
    with pytest.raises(InputError, match="is not what was written"):
        read_task(tmp_path / "graded.csv")


@pytest.mark.parametrize(
    ("metric", "labels", "reason"),
    [
        ("accuracy", {"train": [0, 1], "held_out": []}, "`held_out` has no examples"),
        ("matthews", {"train": [0, 1], "held_out": [-1, -1]}, "constant, all -1"),
        ("accuracy", {"train": [0, 0.5], "held_out": [0, 1]}, "0.5 is no class"),
        ("spearman", {"train": [0, float("inf")], "held_out": [0, 1]}, "NaN or infinite"),
    ],
)
def test_what_cannot_be_learnt_is_refused(metric, labels, reason):
    examples = [Example(s, label, "g", "text") for s in SPLITS for label in labels[s]]
    with pytest.raises(InputError, match=reason):
        checked(Task(metric, examples), "task `t`")


def packed(files):
    """A tar.gz of files by name; equal files give equal bytes."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return content.getvalue()


RATED = "".join(f"{i}\t{i % 7 - 3.5}\tA 'quoted \"text, {i // 2}\r\n" for i in range(100)).encode()
RECORDS = json.dumps([{"text": f"Text {i}", "class": i % 2} for i in range(50)] + [{"text": ""}])
ARCHIVE = packed(
    {
        "top/inner.tar.gz": packed({"data/rated.txt": RATED}),
        "top/a.json": RECORDS.encode(),
        "top/words.csv": b"text,kind\nOne,two\n",
    }
)
ENTRY = {"sha256": sha256(ARCHIVE).hexdigest(), "format": "json", "text": "text", "label": "class"}
TABLE = {"format": "tsv", "columns": ["id", "rating", "text"], "label": "rating"}
NESTED = "top/inner.tar.gz/data/rated.txt"


def made_of_archive(folder, content=ARCHIVE, **entry):
    with served(Mirror(content)) as url:
        whole = {**ENTRY, "urls": [url], **entry}
        return make_task("t", whole, text=None, archive=folder / "t.archive", seed=0)


def test_a_file_of_an_archive_in_an_archive_becomes_a_task(tmp_path):
    task = made_of_archive(tmp_path, member=NESTED, metric="spearman", **TABLE)
    found = sorted((example.text, example.label) for example in task.examples)
    assert found == sorted((f"A 'quoted \"text, {i // 2}", i % 7 - 3.5) for i in range(100))
    # Equal texts are on one side.
    assert not texts(task, "train") & texts(task, "held_out")
    assert len(texts(task, "held_out")) == 10


def test_several_members_are_one_task_and_empty_records_none(tmp_path):
    task = made_of_archive(tmp_path, member=["top/a.json", "top/a.json"], most={"held_out": 4})
    assert {split: len(task.split(split)) for split in SPLITS} == {"train": 80, "held_out": 4}
    assert task.classes == [0, 1]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"member": "top/a.json", "sha256": "0" * 64}, "SHA-256 is .* correct tasks.t.sha256"),
        ({"member": "top/b.json"}, "the archive holds top/inner.tar.gz, .* correct `member`"),
        ({"member": f"{NESTED}/more"}, "correct `member`"),
        ({"member": "top/a.json", "label": "clas"}, "`clas`.* did you mean `class`"),
        (
            {"member": "top/words.csv", "format": "csv", "label": "kind"},
            "'two', which is no number",
        ),
        ({"member": NESTED, **TABLE}, "-3.5 is no class"),
        ({"member": NESTED, **TABLE, "columns": ["rating", "text"]}, "record 1 has 3 columns"),
        ({"member": NESTED, "format": "json"}, "it is no json file"),
    ],
)
def test_an_archive_that_is_not_as_its_entry_says_is_refused_in_a_sentence(entry, reason, tmp_path):
    with pytest.raises(InputError, match=reason):
        made_of_archive(tmp_path, **entry)


def test_what_is_no_archive_is_refused(tmp_path):
    content = b"no archive"
    with pytest.raises(InputError, match="is no tar archive"):
        made_of_archive(tmp_path, content, member="a", sha256=sha256(content).hexdigest())


@pytest.mark.parametrize(("name", "examples"), [("sentiment", 3000), ("movie_ratings", 10605)])
def test_published_archives_are_as_the_configuration_says(name, examples, tmp_path):
    entry = yaml.safe_load((REPOSITORY / "config/config.yaml").read_text())["tasks"][name]
    try:
        requests.head(entry["urls"][0], timeout=10).raise_for_status()
    except requests.RequestException:
        pytest.skip("the package registry cannot be reached")
    task = make_task(name, entry, text=None, archive=tmp_path / "archive", seed=0)
    assert len(task.examples) == examples
    assert not texts(task, "train") & texts(task, "held_out")


def test_scores_are_those_of_other_libraries():
    numbers = np.random.default_rng(0)
    for classes in (2, 4):
        true, predicted = numbers.integers(classes, size=(2, 60))
        assert matthews(true, predicted) == pytest.approx(matthews_corrcoef(true, predicted))
    grades, guesses = numbers.integers(6, size=60), numbers.normal(size=60).round(1)
    assert spearman(grades, guesses) == pytest.approx(spearmanr(grades, guesses).statistic)
    assert accuracy([0, 1, 2, 2], [0, 1, 1, 2]) == 0.75
    assert np.isnan(matthews([0, 1], [1, 1]))
    assert np.isnan(spearman([0, 1], [2, 2]))


def test_probes_are_regularised_regressions_of_scaled_features():
    numbers = np.random.default_rng(1)
    X = numbers.normal(size=(300, 6)) * [1, 2, 3, 4, 5, 60] + 7
    Z = (X - X.mean(axis=0)) / X.std(axis=0).__pow__(2).mean() ** 0.5
    labels = numbers.integers(3, size=300) + (X[:, 0] > 8)
    ours = fit_probe(X, labels, has_classes=True)
    theirs = LogisticRegression(C=1 / (300 * PENALTY), tol=1e-8, max_iter=5000).fit(Z, labels)
    differences = ours.weights - ours.weights[:, :1]
    expected = (theirs.coef_ - theirs.coef_[:1]).T
    np.testing.assert_allclose(differences, expected, atol=1e-4)
    grades = X @ numbers.normal(size=6)
    ours, theirs = (
        fit_probe(X, grades, has_classes=False),
        Ridge(alpha=300 * PENALTY).fit(Z, grades),
    )
    np.testing.assert_allclose(ours.predict(X), theirs.predict(Z), rtol=1e-8)


def test_a_probe_is_unchanged_by_rotation():
    numbers = np.random.default_rng(2)
    X, labels = numbers.normal(size=(200, 8)) * np.arange(1, 9), numbers.integers(2, size=200)
    rotation = np.linalg.qr(numbers.normal(size=(8, 8)))[0]
    one, other = (fit_probe(each, labels, has_classes=True) for each in (X, X @ rotation))
    np.testing.assert_array_equal(one.predict(X), other.predict(X @ rotation))


def test_pairs_are_told_by_difference_and_product_and_not_by_their_texts_side_by_side():
    numbers = np.random.default_rng(3)
    first = numbers.normal(size=(2000, 8))
    labels = numbers.integers(2, size=2000)
    second = np.where(labels[:, None] == 1, first, numbers.permutation(first))
    pooled = np.stack([first, second], axis=1).reshape(4000, 8)
    scores = []
    for X in (features(pooled, has_pairs=True), np.hstack([first, second])):
        probe = fit_probe(X[:1000], labels[:1000], has_classes=True, blocks=2)
        scores.append(accuracy(labels[1000:], probe.predict(X[1000:])))
    assert scores[0] > 0.95
    assert abs(scores[1] - 0.5) < 4 * 0.5 / 1000**0.5


def test_pooling_is_the_mean_of_each_text():
    X = np.arange(12.0).reshape(6, 2)
    assert mean_pooled(X, np.array([0, 0, 0, 1, 2, 2])).tolist() == [[2, 3], [6, 7], [9, 10]]


def test_share_between_groups():
    numbers = np.random.default_rng(4)
    X, noise = numbers.normal(size=(5000, 20)), numbers.integers(250, size=5000)
    # Of groups that say nothing (m - 1) / (n - 1), with a standard deviation of less than .002.
    assert share_between(X, noise) == pytest.approx(249 / 4999, abs=0.006)
    assert share_between(1e4 + X.repeat(2, axis=0), np.arange(5000).repeat(2)) == pytest.approx(1)
    assert share_between(X, np.zeros(5000)) == pytest.approx(0, abs=1e-12)
    assert np.isnan(share_between(np.ones((4, 2)), [0, 1, 0, 1]))
    assert frequency_bands([5, 5, 5, 5, 9, 7, 7, 7]).tolist() == [2, 2, 2, 2, 0, 1, 1, 1]


def split_of(numbers, examples, tokens=6, width=12):
    labels = numbers.integers(2, size=examples)
    X = numbers.normal(size=(examples * tokens, width)) + labels.repeat(tokens)[:, None] / 5
    return SplitVectors(X.astype(np.float32), np.arange(examples).repeat(tokens), labels)


def rows_of(train, held_out):
    rows = probe_rows(train, held_out, layer=3, metric="accuracy", has_pairs=False, seed=0)
    return {row[1:5]: row for row in rows}


def test_what_is_fitted_on_training_tokens_reads_no_held_out_one():
    """Then a text's prediction is the same whatever texts are beside it, so scores of halves add up."""
    numbers = np.random.default_rng(5)
    train, whole = split_of(numbers, 60), split_of(numbers, 40)
    halves = [
        SplitVectors(whole.X[half], whole.texts[:120], whole.labels[examples])
        for half, examples in (
            (slice(0, 120), slice(0, 20)),
            (slice(120, 240), slice(20, 40)),
        )
    ]
    together, *apart = (rows_of(train, split) for split in (whole, *halves))
    for name, row in together.items():
        if name[3] != "each split":
            assert row[-1] == pytest.approx(np.mean([half[name][-1] for half in apart]))
    assert len({name[3] for name in together}) == 3
    # With two equal splits it is all the same what is fitted on which.
    same = rows_of(train, train)
    for (adjustment, clusters, k, fitted_on), row in same.items():
        if fitted_on == "training":
            assert row[5:] == same[adjustment, clusters, k, "each split"][5:]


def test_states_that_are_not_finite_give_empty_values_and_the_run_goes_on():
    numbers = np.random.default_rng(6)
    train, held_out = split_of(numbers, 20), split_of(numbers, 20)
    held_out.X[7, 3] = np.nan
    (row,) = rows_of(train, held_out).values()
    assert row[6] is None
    assert np.isnan([*row[7:9], row[10]]).all()
    layers = {0: train.X, 1: held_out.X}
    spectra = spectra_of(layers)
    rows = [*layer_rows(layers, spectra), *spectrum_rows(layers, spectra)]
    rows += structure_rows(layers, train.texts, 0)
    assert np.isnan([row[-1] for row in rows if row[0] == 1]).all()
    assert np.isfinite([row[-1] for row in rows if row[0] == 0]).all()


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A tiny BERT whose tokenizer joins pairs as BERT's does."""
    folder = save_tiny_model(tmp_path_factory.mktemp("bert"), "bert")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.save_pretrained(folder)
    return folder


PAIRS = [("a b c of windows", "tokens"), ("the shape of what", "Layers, a model; text of tokens")]


def test_pairs_go_through_a_model_as_its_own_library_runs_them(bert):
    (found,) = text_vectors(bert, [(PAIRS, [1, 3])], PROTOCOL, SHAPE)
    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert).eval()
    parts, place = [], 0
    for number, pair in enumerate(PAIRS):
        encoded = tokenizer(*pair, return_tensors="pt", return_token_type_ids=True)
        assert encoded["token_type_ids"].sum() > 1
        with torch.no_grad():
            states = model(**encoded, output_hidden_states=True).hidden_states
        of_text = encoded.sequence_ids(0)
        for which in (0, 1):
            rows = [place for place, text in enumerate(of_text) if text == which]
            parts += [2 * number + which] * len(rows)
            for layer in (1, 3):
                expected = states[layer][0, rows].numpy()
                own = found.layers[layer][place : place + len(rows)]
                np.testing.assert_allclose(own, expected, atol=1e-5)
            place += len(rows)
    assert found.texts.tolist() == parts
    assert set(found.layers) == {1, 3}


def test_parts_keep_their_own_layers_and_texts_without_special_tokens(bert):
    first, second = ["a model", "of what the windows"], ["tokens of tokens"]
    one, other = text_vectors(bert, [(first, [3]), (second, [0, 3])], PROTOCOL, SHAPE)
    (alone,) = text_vectors(bert, [(second, [0, 3])], PROTOCOL, SHAPE)
    assert [set(part.layers) for part in (one, other)] == [{3}, {0, 3}]
    assert one.layers[3].base is other.layers[3].base  # nothing is there twice
    for layer in (0, 3):
        np.testing.assert_allclose(other.layers[layer], alone.layers[layer], atol=1e-5)
    ids = AutoTokenizer.from_pretrained(bert)(first, add_special_tokens=False)["input_ids"]
    assert one.token_ids.tolist() == [*ids[0], *ids[1]]
    assert one.texts.tolist() == [0] * len(ids[0]) + [1] * len(ids[1])
    assert other.texts.tolist() == [0] * len(other.token_ids)


@pytest.mark.parametrize("text", ["", ("a model", ""), ("", "a model")])
def test_a_text_without_a_token_is_refused(text, bert):
    other = "a" if isinstance(text, str) else ("a", "b")
    with pytest.raises(InputError, match="has no token"):
        text_vectors(bert, [([other, text], [3])], PROTOCOL, SHAPE)


def test_the_downloader_is_not_asked_again_for_what_is_there(tmp_path):
    mirror = Mirror(ARCHIVE)
    with served(mirror) as url:
        for _ in range(2):
            entry = {**ENTRY, "urls": [url], "member": "top/a.json"}
            archives.archive_task("t", entry, tmp_path / "t.archive", seed=0)
    assert mirror.asked == 1

"""The audit of published results: its input, its verdicts, and the rate of wrong verdicts."""

import csv
import itertools
import json
import re
import shlex
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from checkouts import REPOSITORY
from shape_of_learning.audit.coincidence import Coincidences, find_grid
from shape_of_learning.audit.judge_results import judge_results
from shape_of_learning.audit.results import PublishedResults, find_step, read_results
from shape_of_learning.checkpoints import find
from shape_of_learning.checkpoints.atlas import (
    AtlasRow,
    merge_published_rows,
    read_atlas,
    write_atlas,
)
from shape_of_learning.checkpoints.verdict import Kind
from shape_of_learning.command_line import app
from shape_of_learning.errors import InputError

sys.path.insert(0, str(REPOSITORY))
from benchmarks.simulated_results import KINDS, SUITE, count_alarms, judge_copies, simulate

NUMBERS = REPOSITORY / "atlas/findings/numbers"
HONEST = 1000


def invoke(*arguments):
    return CliRunner().invoke(app, ["audit", "--results", *map(str, arguments)])


def judge(folder, *arguments):
    """Return the command's exit code, and the verdicts by step."""
    table = folder / "audit.csv"
    result = invoke(*arguments, "--csv", table)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    rows = read_atlas(table) if table.exists() else []
    return result.exit_code, {row.step: row.verdict for row in rows}


def write_suite(folder, copies=(), layout="old", names="step{}", tasks=30, steps=9):
    """Write a folder per step with a file of lm-evaluation-harness; a copy has the numbers of an earlier step."""
    random = np.random.default_rng(5)
    questions = random.integers(300, 3000, tasks)
    scores = np.cumsum(random.normal(0.01, 0.03, (steps, tasks)), axis=0) + 0.3
    scores = np.round(scores * questions) / questions
    perplexities = 40 * np.exp(-0.3 * np.cumsum(random.uniform(0.5, 1.5, steps)))
    for step in range(steps):
        origin = dict(copies).get(step, step)
        results = {}
        for task in range(tasks):
            error = {"acc_stderr": 0.01 + 1e-17 * step, "alias": "x"}
            results[f"task{task}"] = {"acc": scores[origin, task], **error}
        results["lambada_openai"] = {"ppl": perplexities[origin]}
        if layout == "new":
            results = {
                task: {f"{metric},none": value for metric, value in task_scores.items()}
                for task, task_scores in results.items()
            }
        place = folder / names.format(1000 * step)
        place.mkdir(parents=True)
        arguments = f"pretrained=org/model,revision=step{1000 * step}"
        content = {"results": results, "config": {"model_args": arguments}}
        (place / "results_2026-01-02T03-04-05.json").write_text(json.dumps(content))
    return folder


def write_table(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("layout", ["old", "new"])
@pytest.mark.parametrize(
    "names", ["step{}", "step_{}", "checkpoint-{}", "global_step{}", "org__model-step{}"]
)
def test_folders_of_the_harness_are_read_in_both_layouts(tmp_path, layout, names):
    folder = write_suite(tmp_path / "runs", [(6, 2)], layout, names)
    code, verdicts = judge(tmp_path, folder)
    assert code == 1
    assert {step: verdict for step, verdict in verdicts.items() if verdict != "ok"} == {
        2000: "same results as step 6000",
        6000: "same results as step 2000",
    }
    assert set(verdicts) == {1000 * step for step in range(9)}


def test_both_layouts_in_one_training_name_scores_alike(tmp_path):
    old = write_suite(tmp_path / "old", layout="old")
    new = write_suite(tmp_path / "new", layout="new")
    half = [*sorted(old.iterdir())[:4], *sorted(new.iterdir())[4:]]
    results = read_results([f"{folder}" for folder in half])
    assert len(results.columns) == 31  # no standard errors
    assert not np.isnan(results.values).any()


def test_csv_and_json_lines_give_equal_verdicts_and_tokens_are_not_compared(tmp_path):
    results = read_results([f"{write_suite(tmp_path / 'runs', [(6, 2)])}"])
    header = ["iteration", "tokens", "learning_rate", *results.columns]
    rows = [
        [step, 2_097_152 * step, 1 / (1 + step), *map(repr, map(float, values))]
        for step, values in zip(results.steps, results.values, strict=True)
    ]
    table = tmp_path / "table.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    lines = tmp_path / "log.jsonl"
    objects = [dict(zip(header, map(float, row), strict=True)) for row in rows]
    lines.write_text("\n".join(map(json.dumps, objects)))
    judgements = [judge(tmp_path, file) for file in (table, lines)]
    assert judgements[0] == judgements[1] == judge(tmp_path, tmp_path / "runs")
    assert read_results([f"{table}"]).skipped_columns == ("tokens", "learning_rate")
    table.write_text(table.read_text().replace("iteration", "n"))
    assert judge(tmp_path, table, "--step", "n") == judgements[0]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step1000", 1000), ("step_1000", 1000), ("checkpoint-1000", 1000), ("global_step1000", 1000),
        ("2.8b_step1", 1), ("stage1-step2000-tokens9B", 2000), ("step-5k-token-10B", 5000), ("Step0", 0),
        ("ckpt_358", 358), ("misstep5", None), ("model-7b", None), ("results_2026-01-02", None),
    ],
)  # fmt: skip
def test_steps_are_read_from_names(name, step):
    named_step = find_step(Path(f"x/{name}/results.json"), "")
    assert (named_step[0] if named_step else None) == step


def test_a_pattern_tells_where_the_step_stands(tmp_path):
    folder = write_suite(tmp_path / "runs", names="v{}-b")
    # The revision in the harness' arguments names the step where the folder does not.
    assert judge(tmp_path, folder)[0] == 0
    assert judge(tmp_path, folder, "--pattern", "v{step}-b")[0] == 0
    result = invoke(folder, "--pattern", "w{step}")
    assert (result.exit_code, "--pattern" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n2,3\n", "--step COLUMN"),
        ("step,note\n1,x\n2,y\n", "no numbers"),
        ("step,acc\n1,.5\n1,.6\n", "step 1 comes twice"),
        ("step,acc\n1,.5\n", "several"),
        ("step,acc\nlast,.5\n2,.6\n", "no step"),
        ("step,acc\n-1,.5\n2,.6\n", "no step"),
        ("step,acc\ninf,.5\n2,.6\n", "no step"),
        (f"step,acc\n{'9' * 400},.5\n2,.6\n", "no step"),
        (f"step,acc\nstep{'9' * 400},.5\n2,.6\n", "no step"),
        ("model,step,acc\na,1,.5\nb,2,.6\n", "2 models"),
        ("step,acc,acc\n1,.5,.6\n2,.6,.7\n", "several columns `acc`"),
        ('step,loss,acc\n1,3,"0,25"\n2,2,"0,5"\n', "decimal point"),
        ('step,loss,ppl\n1,3,"1,234.5"\n2,2,987.6\n', "decimal point"),
        ('step,loss,ppl\n1,3,"1.234.567,5"\n2,2,9\n', "decimal point"),
        ("step\tloss\tacc\n1\t3\t25,5 %\n2\t2\t26,5 %\n", "decimal point"),
        ("step,tokens\n1,10\n2,20\n3,30\n", "clocks"),
        (f"step,{'x' * 200_000}\n1,2\n", "not a table"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_sentence(tmp_path, content, says):
    file = write_table(tmp_path / "table.csv", content)
    result = invoke(file)
    assert (result.exit_code, "Traceback" in result.output) == (2, False)
    (line,) = [line for line in result.output.splitlines() if line.startswith("ERROR")]
    assert says in line
    assert "table.csv" in line


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("step1.json", "{", "not JSON"),
        ("step1.json", '{"results": {}}', "no numbers"),
        ("step1.json", '{"scores": 1}', "lm-evaluation-harness"),
        ("final.json", '{"results": {"a": {"acc": 0.5}}}', "--pattern"),
        ("log.jsonl", '{"step": 1, "acc": 0.5}\n[1]', "no object"),
        ("log.jsonl", '{"step": 1, "acc": 0.5}\n{', "line 2"),
    ],
)
def test_json_that_cannot_be_used_is_refused_in_one_sentence(tmp_path, name, content, says):
    result = invoke(write_table(tmp_path / name, content))
    assert (result.exit_code, "Traceback" in result.output) == (2, False)
    assert says in result.output


def test_a_loss_of_hundreds_of_digits_is_infinite(tmp_path):
    losses = {1: 10**400, 2: 3, 3: 2}
    lines = [json.dumps({"step": step, "loss": loss}) for step, loss in losses.items()]
    log = write_table(tmp_path / "log.jsonl", "\n".join(lines))
    for step, loss in losses.items():
        content = {"results": {"text": {"loss": loss}}}
        write_table(tmp_path / f"step{step}.json", json.dumps(content))
    for target in (log, tmp_path):
        assert np.isinf(read_results([f"{target}"]).values[0, 0])
        assert judge(tmp_path, target)[1] == {1: "apart", 2: "ok", 3: "ok"}


def test_a_score_that_rises_evenly_is_compared_and_tokens_are_not(tmp_path):
    file = tmp_path / "r.csv"
    rows = [(1000, 2000, 0.30, 0.61), (2000, 4000, 0.31, 0.62), (3000, 6000, 0.32, 0.62)]
    lines = [",".join(map(str, row)) for row in rows]
    file.write_text("\n".join(["step,tokens,acc,boolq", *lines]))
    assert [*read_results([str(file)]).columns] == ["acc", "boolq"]


def test_missing_files_and_wrong_options_are_refused(tmp_path):
    assert "cannot be read" in invoke(tmp_path / "none.csv").output
    assert "no JSON file" in invoke(tmp_path).output
    for options in (["--tensors"], ["--atlas", tmp_path], ["--of", "x"], ["--source", "x"]):
        result = invoke(NUMBERS / "bloom-560m.csv", *options)
        assert (result.exit_code, "ERROR" in result.output) == (2, True)
    result = CliRunner().invoke(app, ["audit", "org/name", "--step", "n"])
    assert (result.exit_code, "--results" in result.output) == (2, True)
    # Neither an input nor an earlier result is lost.
    own = write_table(tmp_path / "own.csv", (NUMBERS / "bloom-560m.csv").read_text())
    for arguments in (["--results", f"{own}"], [f"{tmp_path}/run/checkpoint-{{step}}"]):
        result = CliRunner().invoke(app, ["audit", *arguments, "--csv", f"{own}"])
        assert result.exit_code == 2
        assert own.read_text() == (NUMBERS / "bloom-560m.csv").read_text()


def test_files_of_several_models_are_refused(tmp_path):
    folder = write_suite(tmp_path / "runs")
    (file,) = (folder / "step3000").iterdir()
    file.write_text(file.read_text().replace("org/model", "org/other"))
    result = invoke(folder)
    assert (result.exit_code, "org/other" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("EleutherAI/pythia-1b", ()),
        ("allenai/OLMo-2-1124-7B", ()),
        ("LLM360/Amber", ()),
        ("/runs/pythia-1b/step{step}-tokens{tokens}B", ()),
        ("TinyLlama/TinyLlama-1.1B-step-{step}k-token-{tokens}B", ()),
        ("/runs/iter_000{step}", ()),
        ("/runs/{step}/hf", ()),
        ("/runs/v0-seed1/checkpoint-{step}", ()),
        ("org/model-3.2-run-2-step{step}", ()),
        ("org/run-1_{step}", ()),
        ("/runs/v{step}-b", ("--pattern", "v{step}-b")),
    ],
)
def test_models_whose_names_differ_by_the_step_are_one(tmp_path, model, options):
    names = "v{}-b" if options else "step{}k" if "{step}k" in model else "step{}"
    for step in range(9):
        folder = tmp_path / "runs" / names.format(step)
        folder.mkdir(parents=True)
        name = model.format(step=step, tokens=2.5 * step)
        content = {"results": {"a": {"acc": step**0.5 / 3}}, "model_name": name}
        (folder / "results.json").write_text(json.dumps(content))
    assert judge(tmp_path, tmp_path / "runs", *options)[0] == 0


def test_models_whose_names_differ_by_their_size_are_two(tmp_path):
    for step in (1, 2):
        content = {"results": {"a": {"acc": 0.5}}, "model_name": f"EleutherAI/pythia-{step}b"}
        write_table(tmp_path / f"step{step}.json", json.dumps(content))
    with pytest.raises(InputError, match="pythia-2b"):
        read_results([f"{tmp_path}"])


def test_the_latest_of_several_files_of_a_step_counts_and_files_without_dates_are_refused(tmp_path):
    folder = write_suite(tmp_path / "runs")
    (file,) = (folder / "step3000").iterdir()
    other = json.loads(file.read_text())
    other["results"]["task0"]["acc"] = 0.123
    file.with_name("results_2026-02-02T03-04-05.json").write_text(json.dumps(other))
    results = read_results([f"{folder}"])
    assert results.values[3, results.columns.index("task0/acc")] == 0.123
    file.with_name("anew.json").write_text(json.dumps(other))
    file.unlink()
    other["results"]["task0"]["acc"] = 0.2
    file.with_name("again.json").write_text(json.dumps(other))
    with pytest.raises(InputError, match="different numbers"):
        read_results([f"{folder}"])


def test_tokens_with_commas_and_words_are_no_results(tmp_path):
    table = 'step,tokens,note,acc\n1,"2,097,152",none,.5\n2,"4,194,304","first, second",.6\n'
    assert read_results([f"{write_table(tmp_path / 't.csv', table)}"]).columns == ("acc",)


def test_scores_that_are_written_as_text_are_compared(tmp_path):
    folder = write_suite(tmp_path / "runs", [(6, 2)])
    judgement = judge(tmp_path, folder)
    for file in folder.rglob("*.json"):
        content = json.loads(file.read_text())
        for scores in content["results"].values():
            scores |= {name: f"{value}" for name, value in scores.items()}
            scores["acc_stderr"] = "N/A"
        file.write_text(json.dumps(content))
    assert judge(tmp_path, folder) == judgement


def test_missing_numbers_prove_nothing(tmp_path):
    table = "step,a,b\n" + "".join(f"{step},{step**0.5!r},nan\n" for step in range(8))
    assert judge(tmp_path, write_table(tmp_path / "t.csv", table))[0] == 0
    results = read_results([f"{write_suite(tmp_path / 'runs', [(6, 2)])}"])
    values = results.values.copy()
    values[6, 1:] = np.nan
    few = PublishedResults("", results.steps, results.columns, results.tasks, values)
    kinds = {
        judgement.checkpoint.step: judgement.checkpoint.verdict.kind
        for judgement in judge_results(few)
    }
    assert (kinds[2000], kinds[6000], kinds[5000]) == (Kind.UNKNOWN, Kind.UNKNOWN, Kind.OK)


def test_the_grid_of_scores_is_found():
    random = np.random.default_rng(0)
    for questions in (50, 1838, 5153):
        numbers = random.integers(0, questions, 30) / questions
        assert find_grid(numbers) == pytest.approx(1 / questions, rel=1e-6)
    assert find_grid(np.round(random.random(30), 3)) == pytest.approx(0.001)
    assert find_grid(random.integers(1, 250_000, 30).astype(float)) == 1
    assert find_grid(random.random(30)) < 1e-8
    assert np.isnan(find_grid(np.array([0.5, 0.5, np.nan])))


def test_the_chance_of_equal_numbers_bounds_that_of_random_walks():
    # Columns that change by about s units are equal at two steps in a share of 0.4 / s; the audit must not
    # take equal columns for less likely than they are.
    random = np.random.default_rng(1)
    for spread in (3, 30):
        walk = np.round(np.cumsum(random.normal(size=(60, 300)) * spread, axis=0))
        equal = (np.diff(walk, axis=0) == 0).mean()
        digits = [
            Coincidences(range(3), np.stack([a, a, b]), range(300)).count_digits(0, 1, (0, 1), 1.0)
            for a, b in pairwise(walk[:51])
        ]
        # Half of the columns count, and there are three pairs of steps.
        assert np.mean(digits) + np.log10(3) <= -np.log10(equal) * 300 / 2


@pytest.fixture(scope="module")
def honest():
    """Verdicts on the steps of trainings without a copy, by kind of results."""
    number = {kind: (HONEST - 50) // (len(KINDS) - 1) for kind in KINDS} | {SUITE: 50}
    return {
        kind: sum((count_alarms(simulate(seed, kind)) for seed in range(number[kind])), Counter())
        for kind in KINDS
    }, sum(number.values())


@pytest.mark.long
def test_no_honest_training_of_a_thousand_is_accused(honest):
    counts, number = honest
    assert number == HONEST
    for kind_counts in counts.values():
        assert set(kind_counts) <= {"ok", "unknown", "not yet moved"}
    # Few and rounded numbers repeat by chance, so their verdict is unknown.
    assert counts["1 to 3 tasks"]["unknown"] > 100
    assert counts[SUITE]["unknown"] == 0


def test_each_planted_copy_of_a_suite_is_found_and_no_copy_is_called_good():
    counts: Counter[str] = Counter()
    for seed in range(60):
        training = simulate(seed, SUITE, copies=1 + seed % 3)
        counts += judge_copies(training)
    assert counts["found"] >= 0.98 * counts.total()
    assert counts["missed"] == 0
    for kind in KINDS[1:]:
        kind_counts = sum((judge_copies(simulate(seed, kind, 2)) for seed in range(40)), Counter())
        assert kind_counts["missed"] == 0
        if kind == "1 to 3 tasks":
            assert set(kind_counts) <= {"unknown", "not yet moved"}


def test_steps_whose_scores_stand_still_are_not_accused():
    # After step 5 the accuracies stand still, though the weights may move.
    random = np.random.default_rng(2)
    values = np.round(np.cumsum(random.normal(0, 0.02, (12, 200)), axis=0), 2)
    values[6:] = values[5]
    names = tuple(f"task{task}/acc" for task in range(200))
    results = PublishedResults("", tuple(range(0, 12_000, 1000)), names, names, values)
    kinds = [judgement.checkpoint.verdict.kind.value for judgement in judge_results(results)]
    assert kinds == ["ok"] * 5 + ["unknown"] * 7


@pytest.mark.parametrize("full", [0, 11])
def test_equal_rounded_scores_are_no_copies_though_one_step_is_not_rounded(full):
    for seed in range(20):
        training = simulate(seed, "tasks")
        values = np.round(training.results.values, 2)
        row = full % len(values)
        values[row] = training.results.values[row]
        judgements = judge_results(replace(training.results, values=values))
        assert {judgement.checkpoint.verdict.kind for judgement in judgements} <= {
            Kind.OK,
            Kind.UNKNOWN,
            Kind.NOT_YET_MOVED,
        }
    # Rounded scores that stand still may be equal by chance; a copy that is not rounded is still found.
    random = np.random.default_rng(3)
    values = np.cumsum(random.normal(0.01, 0.02, (14, 30)), axis=0)
    values[6:12] = values[6]
    rounded_values = np.round(values, 2)
    rounded_values[[full, 13]] = values[[full, 2]]
    rounded_values[2] = values[2]
    names = tuple(f"task{task}/acc" for task in range(30))
    results = PublishedResults("", tuple(range(0, 14_000, 1000)), names, names, rounded_values)
    kinds = [judgements.checkpoint.verdict.kind for judgements in judge_results(results)]
    assert Kind.SAME_RESULTS not in kinds[6:11]
    assert kinds[2] is kinds[13] is Kind.SAME_RESULTS


@pytest.mark.parametrize(
    ("letters", "unknown"),
    [
        ("ABACDABDCACB", "ABCD"),
        ("ABACABCA?" + "?" * 12, "ABC"),  # the model learns later
        ("ABABAB", "AB"),
        ("???A???A???A???B?B?", ""),  # one after the other
        ("ABC??ABC??", ""),  # two sequences of steps with equal results
        ("A??B??A??B", ""),
        # Copies of one step and a pair of another among many good ones.
        ("?????A?A?B?A?B?A?A??", ""),
    ],
)
def test_a_model_that_gives_one_answer_to_all_questions_copies_no_step(letters, unknown):
    # A model that always gives one letter has the share of questions with that answer.
    random = np.random.default_rng(1)
    questions = random.integers(100, 300, 57)
    shares = {letter: random.binomial(questions, 0.25) / questions for letter in "ABCD"}
    values = np.stack(
        [
            random.binomial(questions, 0.3) / questions if letter == "?" else shares[letter]
            for letter in letters
        ]
    )
    names = tuple(f"mmlu_{subject}/acc" for subject in range(57))
    results = PublishedResults("", tuple(range(len(letters))), names, names, values)
    for letter, judgement in zip(letters, judge_results(results), strict=True):
        kind = judgement.checkpoint.verdict.kind
        expected_kind = (
            Kind.UNKNOWN if letter in unknown else Kind.OK if letter == "?" else Kind.SAME_RESULTS
        )
        assert kind is expected_kind, (judgement.checkpoint.step, judgement.reason)


def test_a_loss_far_above_those_of_the_steps_around_it_lies_apart(tmp_path):
    losses = [9.0, 5.0, 4.0, 3.5, 11.0, 3.2, 3.1]
    rows = "".join(f"{step},{loss},{2.718281828**loss!r}\n" for step, loss in enumerate(losses))
    table = write_table(tmp_path / "t.csv", "step,eval/loss,lambada/perplexity\n" + rows)
    code, verdicts = judge(tmp_path, table)
    assert (code, [step for step, verdict in verdicts.items() if verdict == "apart"]) == (1, [4])
    # The first steps, at which a model has not learned yet, are no outliers.
    first = write_table(
        tmp_path / "u.csv", "step,ppl\n1,3540501.9\n1000,41.8\n2000,10.2\n3000,7.1\n"
    )
    assert judge(tmp_path, first)[0] == 0


@pytest.mark.parametrize("name", ["loss_scale", "train/loss_scale", "loss scale", "loss-scale"])
def test_the_scale_of_a_loss_is_a_setting_and_no_loss(tmp_path, name):
    scales = [65536, 65536, 131072, 131072, 65536, 65536, 131072, 262144, 1024, 65536]
    rows = "".join(f"{step},{3 + 1 / (1 + step)!r},{scale}\n" for step, scale in enumerate(scales))
    table = write_table(tmp_path / "t.csv", f"step,eval_loss,{name}\n{rows}")
    code, verdicts = judge(tmp_path, table)
    assert (code, set(verdicts.values())) == (0, {"ok"})
    assert read_results([f"{table}"]).skipped_columns == (name,)


def test_scores_of_a_step_that_guesses_lie_apart():
    random = np.random.default_rng(4)
    scores = np.linspace(0.5, 0.6, 15)[:, None] + random.normal(0, 0.005, (15, 20))
    names = tuple(f"task{task}/acc" for task in range(20))
    for row in (4, 11):
        values = scores.copy()
        values[row] = random.normal(0.25, 0.01, 20)
        results = PublishedResults("", tuple(range(0, 15_000, 1000)), names, names, values)
        kinds = [judgement.checkpoint.verdict.kind for judgement in judge_results(results)]
        assert [place for place, kind in enumerate(kinds) if kind is Kind.APART] == [row]


def test_rows_of_training_and_evaluation_at_one_step_are_joined(tmp_path):
    lines = [
        f'{{"step": {n}, "loss": {3 - n / 9}}}\n{{"step": {n}, "eval_loss": {3 - n**0.5}}}'
        for n in range(5)
    ]
    results = read_results([f"{write_table(tmp_path / 'log.jsonl', chr(10).join(lines))}"])
    # The loss of the training is linear in the step, but no multiple of it.
    assert results.values.shape == (5, 2)
    results = read_results([f"{write_suite(tmp_path / 'runs')}"])
    (tmp_path / "runs/step0/config.json").write_text('{"hidden_size": 8}')
    assert read_results([f"{tmp_path / 'runs'}"]).columns == results.columns


def test_the_mean_of_a_group_is_not_compared(tmp_path):
    folder = write_suite(tmp_path / "runs")
    for file in folder.rglob("*.json"):
        content = json.loads(file.read_text())
        content["groups"] = {"all": {"acc,none": 0.3}}
        content["results"] |= content["groups"]
        file.write_text(json.dumps(content))
    assert not [name for name in read_results([f"{folder}"]).columns if name.startswith("all/")]


def test_a_late_copy_of_two_equal_steps_accuses_both():
    # Steps 3 and 4 may stand still, but step 15 cannot have their numbers.
    training = simulate(5, SUITE)
    values = training.results.values.copy()
    values[4] = values[3]
    values[15] = values[3]
    kinds = [
        judgement.checkpoint.verdict
        for judgement in judge_results(replace(training.results, values=values))
    ]
    assert [kinds[row].kind for row in (3, 4, 15)] == [Kind.SAME_RESULTS] * 3
    assert kinds[3].steps == kinds[4].steps == (training.results.steps[15],)


def test_steps_without_a_number_in_common_are_not_linked_by_a_third():
    random = np.random.default_rng(6)
    values = np.cumsum(random.normal(size=(9, 40)), axis=0)
    values[7] = values[2]
    values[2, :20] = values[4, 20:] = np.nan
    values[4, :20] = values[7, :20]
    names = tuple(f"task{task}" for task in range(40))
    results = PublishedResults("", tuple(range(9)), names, names, values)
    verdicts = [judgement.checkpoint.verdict for judgement in judge_results(results)]
    assert [verdicts[row].kind for row in (2, 4, 7)] == [Kind.SAME_RESULTS] * 3
    assert (verdicts[2].steps, verdicts[4].steps) == ((7,), (7,))


def test_the_first_steps_may_be_equal(tmp_path):
    folder = write_suite(tmp_path / "runs", [(1, 0)])
    code, verdicts = judge(tmp_path, folder)
    assert (code, verdicts[0], verdicts[1000]) == (0, "ok", "not yet moved")


def row(revision, verdict, **fields):
    step = int(revision.removeprefix("step"))
    return AtlasRow(repository="o/m", revision=revision, step=step, verdict=verdict, **fields)


def test_published_results_fill_the_atlas_and_replace_nothing():
    def published(revision, verdict):
        return row(
            revision, verdict, reason="r", known_by="published results", source="https://x/r"
        )

    old = [
        row("step1", "unknown", tokens=7),
        row("step2", "same as step 1", reason="r", known_by="report", source="https://x/1"),
        row("step3", "same as main", reason="r", known_by="hashes", source="audit"),
        row("step4", "unknown"),
        row("step5", "broken", reason="r", known_by="report", source="https://x/2"),
    ]
    new = [
        published("step1", "same results as step 9"),
        published("step2", "same results as step 1"),
        published("step3", "ok"),
        published("step4", "ok"),
        published("step5", "apart"),
    ]
    rows = {atlas_row.revision: atlas_row for atlas_row in merge_published_rows(old, new)}
    assert (rows["step1"].verdict, rows["step1"].tokens) == ("same results as step 9", 7)
    assert (rows["step2"].verdict, rows["step2"].known_by) == (
        "same as step 1",
        "report, published results",
    )
    assert rows["step2"].source == "https://x/1 https://x/r"
    assert (rows["step3"], rows["step4"]) == (old[2], old[3])
    assert (rows["step5"].verdict, rows["step5"].known_by) == (
        "broken",
        "report, published results",
    )
    again = merge_published_rows(rows.values(), new)
    assert list(again) == list(rows.values())


def test_results_of_a_model_of_the_atlas_go_into_its_table(tmp_path):
    path = tmp_path / "atlas/bloom/bloom-560m.csv"
    path.parent.mkdir(parents=True)
    old_rows = [
        row.model_copy(update={"known_by": ""})
        for row in read_atlas(REPOSITORY / "atlas/bloom/bloom-560m.csv")
    ]
    write_atlas(path, old_rows)
    options = [
        "--of",
        "bigscience/bloom-560m-intermediate",
        "--source",
        "https://github.com/x/y/tree/abc",
    ]
    result = invoke(NUMBERS / "bloom-560m.csv", *options, "--atlas", tmp_path / "atlas")
    assert result.exit_code == 1
    new_rows = {row.step: row for row in read_atlas(path)}
    assert (new_rows[500_000].verdict, new_rows[500_000].known_by) == (
        "same as step 10000",
        "published results",
    )
    assert "https://github.com/x/y/tree/abc" in new_rows[600_000].source
    # Its results are its own, which shows nothing of its weights.
    assert new_rows[10_000].verdict == "unknown"


PAGES = sorted((REPOSITORY / "atlas/findings").glob("*.md"))


def join_words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_command_of_a_finding_prints_its_quotation(page, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    text = page.read_text()
    (command,) = re.findall(r"```bash\n(.*?)\n```", text)
    (excerpt,) = re.findall(r"```text\n(.*?)\n```", text, re.DOTALL)
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code in (0, 1)
    for line in excerpt.splitlines():
        assert join_words(line) in join_words(result.output)
    for word in ("**What is open.**", "**Since when.**", "**Asked for.**"):
        assert word in text


def read_numbers(name):
    with (NUMBERS / f"{name}.csv").open() as file:
        return {int(row["step"]): row for row in csv.DictReader(file)}


def test_numbers_in_the_findings_are_those_of_their_tables():
    steps = read_numbers("pythia-14m")
    moving_names = [
        name for name in steps[0] if name != "step" and steps[0][name] != steps[2][name]
    ]
    page = join_words((REPOSITORY / "atlas/findings/pythia-first-steps.md").read_text())
    assert f"{len(steps[0]) - 1} ranks" in page
    assert f"and {len(moving_names)} differ at step 2" in page
    steps = read_numbers("bloom-560m")
    page = join_words((REPOSITORY / "atlas/findings/bloom-560m.md").read_text())
    losses = [f"{float(row['loss']):.3f}".removeprefix("0") for row in steps.values()]
    assert f"| {' | '.join(losses)} |" in page
    common_counts = {
        pair: sum(steps[pair[0]][name] == steps[pair[1]][name] for name in steps[1000])
        for pair in itertools.combinations(steps, 2)
    }
    assert common_counts.pop((10_000, 500_000)) == 76
    assert f"any other two steps in at most {max(common_counts.values())}." in page
    page = (REPOSITORY / "atlas/findings/pythia-2.8b.md").read_text()
    perplexities = [
        float(row["lambada_openai/ppl"]) for row in read_numbers("pythia-2.8b").values()
    ]
    cells = [f"{value:,.0f}" if value > 1000 else f"{value:.1f}" for value in perplexities]
    assert f"| {' | '.join(cells)} |" in page
    assert all(
        find("pythia-2.8b", step=step).verdict == "same as main"
        for step in list(read_numbers("pythia-2.8b"))[:-1]
    )
    faults = [
        row for row in read_atlas(REPOSITORY / "atlas/pythia/pythia-2.8b.csv") if row.is_fault
    ]
    assert f"the {len(faults)} revisions" in page
    assert find("bloom-560m", step=500_000).known_by == "report, published results"
    assert find("pythia-14m", step=1).known_by == "published results"

"""Audits of trainings as they are published, on a Hub on loopback and on the disk."""

import csv
import hashlib
import json
import subprocess
import sys
from collections import Counter

import pytest

import published_trainings as published
from hub_fetching import make_environment, save_model
from hub_server import Proxy, serve_hub, serve_proxy
from published_trainings import OF_MAIN, PYTHIA, SECOND, make_one_file, make_shards
from shape_of_learning.checkpoints.atlas import read_atlas

NAMES = {
    "ettin": [f"{kind}{n}" for kind in ("step", "ext", "decay") for n in (2997, 5994, 500000)],
    "olmo-2": [
        "stage1-step1000-tokens3B",
        "stage1-step2000-tokens5B",
        "stage2-ingredient1-step23852-tokens51B",
    ],
    "olmo-3": ["stage1-step1000", "stage1-step2000"],
    "smollm3": [
        "stage1-step-40000",
        "stage1-step-80000",
        "stage2-step-3480000",
        "stage3-step-4720000",
    ],
    "fineweb": ["step-001000-2BT", "step-002000-4BT", "step-167000-350BT"],
    "amber": ["ckpt_000", "ckpt_001", "ckpt_358"],
    "redpajama": ["240b_tokens", "280b_tokens", "1000b_tokens"],
    "tinyllama": ["step-5k-token-10B", "step-10k-token-21B"],
    "bloom": ["global_step1000", "global_step10000"],
    "crfm": ["checkpoint-0", "checkpoint-100"],
}
HONEST = 1000


def make_branches(names):
    """A branch of its own weights for each name, and a main."""
    return {"main": make_one_file("main")} | {name: make_one_file(name) for name in names}


@pytest.fixture(scope="module")
def hub(tmp_path_factory, hub_program):
    root = tmp_path_factory.mktemp("hub")
    published.publish(root, "EleutherAI/pythia-2.8b", published.make_pythia_2_8b())
    published.publish(root, "EleutherAI/pythia-12b", published.make_pythia_12b())
    for name, names in NAMES.items():
        published.publish(root, f"org/{name}", make_branches(names), tags=name == "ettin")
    honest = {f"step{n}": make_shards(f"a{n}", f"b{n}") for n in range(HONEST)}
    honest["main"] = honest[f"step{HONEST - 1}"]
    published.publish(root, "org/honest", honest)
    published.publish(root, "org/planted", make_planted_faults())
    folders = {f"hf_ckpt/{n}B/model.safetensors": f"{n}" for n in (16.78, 33.55, 67.11)}
    published.publish(root, "org/folders", {"main": folders})
    for seed in (0, 1):
        for step in (0, 20, 40):
            published.publish(
                root,
                f"org/bert-seed_{seed}-step_{step}k",
                {"main": make_one_file(f"{seed} {step}")},
            )
    for name, branches in make_hard_repositories().items():
        published.publish(root, name, branches)
    with serve_hub(root, hub_program) as endpoint:
        yield endpoint


def make_hard_repositories():
    """Repositories that are easily misread."""
    distinct_steps = {f"step{n}": make_one_file(f"{n}") for n in range(12)}
    shard = make_shards("a", "b")
    both = {
        f"step{n}": {**make_shards(f"a{n}", f"b{n}"), "model.safetensors": f"w{n}"}
        for n in range(6)
    }
    safetensors_steps = {
        name: {
            p.replace("pytorch_model", "model").replace(".bin", ".safetensors"): c
            for p, c in files.items()
        }
        for name, files in {f"step{n}": make_shards(f"a{n}", f"b{n}") for n in range(6)}.items()
    }
    del safetensors_steps["step5"]["model-00002-of-00002.safetensors"]
    safetensors_steps["step5"]["pytorch_model.bin"] = "whole"
    stages = {
        f"stage{s}-step{n}-tokens{n}B": make_one_file(f"{s} {n}") for s in (1, 2) for n in (1, 2, 3)
    }
    stages["stage2-step2-tokens2B"] = stages["stage2-step3-tokens3B"]
    return {
        # The last step holds an earlier one's weights, and main the true ones.
        "org/latest": {
            "main": make_one_file("11"),
            **distinct_steps,
            "step11": distinct_steps["step4"],
        },
        # The second has the files of the first in one format and those of the third in the other.
        "org/linked": {
            "main": make_one_file("x"),
            "step1": make_one_file("p"),
            "step2": {**make_one_file("p"), "pytorch_model.bin": "q"},
            "step3": {"config.json": "{}", "pytorch_model.bin": "q"},
            "step4": make_one_file("own"),
        },
        # As DataDecide: several seeds in one repository.
        "org/decide": make_branches(f"step{n}-seed-{seed}" for n in (0, 1250) for seed in (0, 1)),
        "org/formats": {"main": both["step5"], **both},
        "org/preferred": {"main": safetensors_steps["step4"], **safetensors_steps},
        "org/stages": {"main": make_one_file("x"), **stages},
        "org/renamed": {
            "main": {},
            **{f"step{n}": {"consolidated.00.pth.bin": f"{n}"} for n in (1, 2)},
        },
        "org/shard": {"main": shard, "step2": shard, "step1": make_shards("a2", "b2")},
        "EleutherAI/pythia-410m-seed2": {
            "main": make_one_file("m"),
            **{f"step{n}": make_one_file(f"{n}") for n in (0, 111_000)},
        },
    }


def make_planted_faults():
    """Forty steps of three shards: a copy, two of main, a swapped shard, one missing shard, no weights, no file."""
    steps = {n: make_shards(*(f"{part}{n}" for part in "abc")) for n in range(40)}
    steps[1] = steps[0]
    steps[12] = steps[30]
    steps[20] = steps[21] = steps[39]
    shards = list(steps[15])
    steps[15] = {**steps[15], shards[2]: steps[16][shards[2]]}
    del steps[25][list(steps[25])[2]]
    steps[28] = {"config.json": "{}"}
    return {"main": steps[39]} | {f"step{n}": files for n, files in steps.items()}


def run(endpoint, folder, *arguments, **settings):
    """The command, in a process of its own; its rows, what it printed and its exit code."""
    rows, page = folder / "audit.json", folder / "audit.md"
    variables = make_environment(endpoint, folder, **settings) | {"COLUMNS": "200"}
    files = ("--json", str(rows), "--csv", str(folder / "audit.csv"), "--markdown", str(page))
    process = subprocess.run(
        [sys.executable, "-m", "shape_of_learning", "audit", *arguments, *files],
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Traceback" not in process.stderr, process.stderr
    objects = json.loads(rows.read_text()) if rows.exists() else []
    return (
        {row["revision"]: row for row in objects},
        process.stdout + process.stderr,
        process.returncode,
    )


def test_an_audit_of_pythia_2_8b_gives_the_reported_verdicts(hub, tmp_path):
    proxy = Proxy(hub)
    with serve_proxy(proxy) as endpoint:
        rows, output, code = run(endpoint, tmp_path, "EleutherAI/pythia-2.8b")
    assert (code, len(rows), len(proxy.requests) <= 320) == (1, 154, True)
    for step in PYTHIA:
        verdict = rows[f"step{step}"]["verdict"]
        late_verdict = "same as step 143000" if step in SECOND and step != 143_000 else "ok"
        assert verdict == ("same as main" if step in OF_MAIN else late_verdict)
    assert "EleutherAI/pythia#205" in output
    assert rows["step0"]["sha256"] == hashlib.sha256(b"main").hexdigest()
    page = (tmp_path / "audit.md").read_text()
    for word in (
        "85 of 154",
        "`step0` to `step53000` (64)",
        "EleutherAI/pythia#205",
        "SHA-256",
        "`main` (commit",
    ):
        assert word in page
    with (tmp_path / "audit.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 154


def test_an_audit_of_pythia_12b_names_the_owners_of_shards(hub, tmp_path):
    rows, output, code = run(hub, tmp_path, "EleutherAI/pythia-12b")
    faults = {name: row for name, row in rows.items() if row["verdict"] != "ok"}
    assert (code, sorted(faults)) == (1, ["step50000", "step58000"])
    assert all(row["verdict"] == "mixed shards" for row in faults.values())
    assert "step143000" in faults["step50000"]["reason"]
    assert "EleutherAI/pythia#206" in output


def test_planted_faults_are_found_and_no_others(hub, tmp_path):
    rows, _, code = run(hub, tmp_path, "org/planted")
    verdicts = {int(name.removeprefix("step")): row["verdict"] for name, row in rows.items()}
    faults = {1: "not yet moved", 12: "same as step 30", 30: "same as step 12", 15: "mixed shards"}
    faults |= {
        16: "mixed shards",
        20: "same as step 39",
        21: "same as step 39",
        25: "missing",
        28: "missing",
    }
    assert (code, {s: v for s, v in verdicts.items() if v != "ok"}) == (1, faults)
    assert "shard 2 of 3" in rows["step25"]["reason"]


@pytest.mark.long
def test_a_thousand_good_revisions_are_ok_and_listed_once(hub, tmp_path):
    proxy = Proxy(hub)
    with serve_proxy(proxy) as endpoint:
        rows, output, code = run(endpoint, tmp_path, "org/honest")
        assert (code, Counter(row["verdict"] for row in rows.values())) == (0, {"ok": HONEST})
        assert "about" in output
        questions = len(proxy.requests)
        rows, _, code = run(endpoint, tmp_path, "org/honest")
        assert (code, len(rows), len(proxy.requests) - questions <= 2) == (0, HONEST, True)


def test_a_copy_under_the_last_name_makes_no_other_bad(hub, tmp_path):
    rows, _, code = run(hub, tmp_path, "org/latest")
    # Nothing tells which of the two is right, and main has others.
    assert (code, rows["step4"]["verdict"], rows["step11"]["verdict"]) == (
        1,
        "same as step 11",
        "same as step 4",
    )
    rows, _, code = run(hub, tmp_path, "org/linked")
    assert [row["verdict"] for row in rows.values()] == [
        "same as step 2",
        *["same as step 1"] * 2,
        "ok",
    ]
    entry = tmp_path / "own.yaml"
    training = "{revision: 'checkpoint-{step}', steps: [0, 100, 500]}"
    entry.write_text(f"x: {{repository: org/crfm, training: {training}}}")
    rows, _, code = run(hub, tmp_path, str(entry))
    verdicts = {row["step"]: row["verdict"] for row in rows.values()}
    assert (code, verdicts) == (1, {0: "ok", 100: "ok", 500: "missing"})


def test_the_weights_that_would_be_loaded_must_be_complete(hub, tmp_path):
    rows, _, code = run(hub, tmp_path, "org/formats")
    assert (code, {row["verdict"] for row in rows.values()}) == (0, {"ok"})
    rows, _, code = run(hub, tmp_path, "org/preferred")
    assert (code, rows["step5"]["verdict"], rows["step5"]["reason"]) == (
        1,
        "missing",
        "shard 2 of 2",
    )
    rows, _, code = run(hub, tmp_path, "org/renamed")
    assert (code, {row["verdict"] for row in rows.values()}) == (2, {"unknown"})


def test_stages_whose_steps_restart_are_separate_trainings(hub, tmp_path):
    rows, _, code = run(hub, tmp_path, "org/stages")
    faults = {name: row["verdict"] for name, row in rows.items() if row["verdict"] != "ok"}
    assert (code, len(rows)) == (1, 6)
    assert faults == {
        "stage2-step2-tokens2B": "same as step 3",
        "stage2-step3-tokens3B": "same as step 2",
    }


def test_a_report_that_the_files_deny_is_not_repeated(hub, tmp_path):
    rows, _, code = run(hub, tmp_path, "EleutherAI/pythia-410m-seed2")
    assert (code, rows["step111000"]["verdict"]) == (0, "ok")
    assert "reported as missing" in rows["step111000"]["reason"]
    assert "issues/202" in rows["step111000"]["source"]


def test_a_wrong_target_does_not_stop_the_audit_of_others(hub, tmp_path):
    rows, output, code = run(hub, tmp_path, "org/crfm", "org/none", "org/shard")
    assert (code, len(rows), "org/none" in output) == (2, 4, True)
    assert "org/none" in (tmp_path / "audit.md").read_text()
    entries = tmp_path / "my entries.yaml"
    entries.write_text("""
gone: {repository: org/none, training: {revision: "step{step}", steps: all}}
there: {repository: org/shard, training: {revision: "step{step}", steps: all}}
""")
    rows, _, code = run(hub, tmp_path, str(entries))
    assert (code, len(rows)) == (2, 2)
    assert f"audit '{entries}'" in (tmp_path / "audit.md").read_text()
    for content in ("- a", "hello"):
        entries.write_text(content)
        _, output, code = run(hub, tmp_path, str(entries))
        assert (code, "is no file of models" in output) == (2, True)


def test_a_damaged_cache_of_listings_is_written_again(hub, tmp_path):
    run(hub, tmp_path, "org/crfm")
    (memory,) = (tmp_path / "hf").rglob("listings.jsonl")
    memory.write_bytes(b'null\n3\n["c", []]\n[["c"], {}]\n\xff\xfe\n["c", {"p": null}')
    rows, _, code = run(hub, tmp_path, "org/crfm")
    assert (code, len(rows)) == (0, 2)
    assert len(memory.read_text(errors="replace").splitlines()) == 6 + 3


def test_an_audit_waits_for_a_server_with_too_many_requests(hub, tmp_path):
    proxy = Proxy(hub, failures={"refs": 2}, status=429)
    with serve_proxy(proxy) as endpoint:
        rows, _, code = run(endpoint, tmp_path, "org/crfm")
    assert (code, len(rows)) == (0, 2)


@pytest.mark.long
@pytest.mark.parametrize(("name", "steps"), [
    ("ettin", [2997, 5994, 500_000]), ("olmo-2", [1000, 2000]), ("olmo-3", [1000, 2000]),
    ("fineweb", [1000, 2000, 167_000]),
    ("smollm3", [40_000, 80_000, 3_480_000, 4_720_000]), ("amber", [0, 1, 358]), ("redpajama", [240, 280, 1000]),
    ("tinyllama", [5000, 10_000]), ("bloom", [1000, 10_000]), ("crfm", [0, 100]),
])  # fmt: skip
def test_names_of_suites_are_read(hub, tmp_path, name, steps):
    rows, output, code = run(hub, tmp_path, f"org/{name}")
    assert (code, [row["step"] for row in rows.values()]) == (0, steps)
    if name == "ettin":
        assert "decay2997" in output  # not a step, and said so
        rows, *_ = run(hub, tmp_path, f"org/{name}", "--pattern", "ext{step}")
        assert list(rows) == ["ext2997", "ext5994", "ext500000"]


def test_an_entry_is_audited_with_all_its_steps_folders_and_seeds(hub, tmp_path):
    entries = tmp_path / "own.yaml"
    entries.write_text(
        """
in-folders:
  repository: org/folders
  subfolder: hf_ckpt/{gigatokens}B
  training: {revision: main, steps: log}
decide:
  repository: org/decide
  seeds: [0, 1]
  training: {revision: "step{step}-seed-{seed}", steps: log}
bert:
  repository: org/bert-seed_{seed}-step_{kilosteps}k
  seeds: [0, 1]
  training: {revision: main, steps: [0, 20000, 40000], tokens_per_step: 10}
"""
    )
    atlas = tmp_path / "atlas"
    rows, _, code = run(hub, tmp_path, str(entries), "--atlas", str(atlas))
    assert code == 0
    assert [rows[f"main/hf_ckpt/{n}B"]["step"] for n in (16.78, 33.55, 67.11)] == [17, 34, 67]
    assert [row.revision for row in read_atlas(atlas / "own/decide-1.csv")] == [
        "step0-seed-1",
        "step1250-seed-1",
    ]
    with (atlas / "own/bert-1.csv").open() as file:
        bert_rows = list(csv.DictReader(file))
    assert [(row["step"], row["tokens"]) for row in bert_rows] == [
        ("0", "0"),
        ("20000", "200000"),
        ("40000", "400000"),
    ]
    assert {row["source"] for row in bert_rows} == {"audit"}


def test_an_unreachable_or_missing_repository_ends_the_audit(hub, tmp_path):
    *_, code = run("http://127.0.0.1:9", tmp_path, "org/crfm", HF_HUB_OFFLINE="1")
    assert code == 2
    _, output, code = run(hub, tmp_path, "org/none")
    assert (code, "org/none" in output) == (2, True)
    _, output, code = run(hub, tmp_path, "org/bert-seed_0-step_0k")
    assert (code, "--pattern" in output) == (2, True)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """Steps of a training on the disk: step 2 is step 1 in shards, and step 3 has no weights."""
    folder = tmp_path_factory.mktemp("run")
    for step, seed, form in (
        (0, 0, "safetensors"),
        (1, 1, "safetensors"),
        (2, 1, "shards"),
        (5, 5, "bin"),
    ):
        save_model(folder / f"checkpoint-{step}", seed=seed, form=form)
    (folder / "checkpoint-3").mkdir()
    (folder / "checkpoint-3/config.json").write_text(
        (folder / "checkpoint-0/config.json").read_text()
    )
    return folder


@pytest.mark.long
def test_local_folders_are_audited(run_folder, tmp_path):
    for target in (str(run_folder), f"{run_folder}/checkpoint-{{step}}"):
        rows, _, code = run("http://127.0.0.1:9", tmp_path, target)
        verdicts = {row["step"]: row["verdict"] for row in rows.values()}
        assert (code, verdicts) == (1, {0: "ok", 1: "ok", 2: "ok", 3: "missing", 5: "ok"})
    rows, _, code = run("http://127.0.0.1:9", tmp_path, str(run_folder), "--tensors")
    # Nothing tells which of the two is right, and one of them is another step's.
    assert [rows[f"step{s}"]["verdict"] for s in (1, 2)] == ["same as step 2", "same as step 1"]
    assert "tensors" in rows["step2"]["reason"]


@pytest.mark.long
def test_copies_in_other_files_are_found_by_tensors_on_the_hub(hub_program, tmp_path):
    from hub_server import HubRepository

    root = tmp_path / "hub"
    root.mkdir()
    repository = HubRepository(root, "org/anew")
    for name, seed, form in (
        ("main", 9, "safetensors"), ("step0", 0, "safetensors"), ("step1", 1, "safetensors"),
        ("step2", 9, "shards"), ("step3", 1, "bin"), ("step9", 9, "safetensors"),
    ):  # fmt: skip
        folder = save_model(tmp_path / name, seed=seed, form=form)
        large = tuple(p.name for p in folder.iterdir() if p.suffix in (".bin", ".safetensors"))
        repository.commit(name, folder, large=large)
    with serve_hub(root, hub_program) as hub:
        proxy = Proxy(hub)
        with serve_proxy(proxy) as endpoint:
            # Where a listing of each is too much, files are asked for one by one, and the etag is the hash.
            few = "from shape_of_learning.audit import listings; listings.QUESTIONS = 3"
            process = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    f"{few}; from shape_of_learning.command_line import app; app()",
                    "audit",
                    "org/anew",
                    "--pattern",
                    "step{step}",
                    "--json",
                    f"{tmp_path}/few.json",
                ],
                env=make_environment(endpoint, tmp_path / "few"),
                capture_output=True,
                text=True,
            )
            assert process.returncode == 0, process.stderr
            commits = {row["commit"] for row in json.loads((tmp_path / "few.json").read_text())}
            assert len(commits & {*proxy.requests}) < len(commits)
        endpoint = hub
        rows, _, code = run(endpoint, tmp_path, "org/anew")
        assert (code, {row["verdict"] for row in rows.values()}) == (0, {"ok"})
        rows, _, code = run(endpoint, tmp_path, "org/anew", "--tensors")
    verdicts = {name: row["verdict"] for name, row in rows.items()}
    assert code == 1
    assert verdicts["step2"] in ("same as main", "same as step 9")
    assert (verdicts["step1"], verdicts["step3"]) == ("same as step 3", "same as step 1")
    assert (verdicts["step0"], verdicts["step9"]) == ("ok", "ok")

"""What is known of jobs from their records and benchmarks."""

import json

from shape_of_learning.provenance.job_list import environments, job_rows, read_jobs, rule_rows

BENCHMARK = "s\th:m:s\tmax_rss\tcpu_time\n{}\t0:00:01\t{}\t{}\n"
RECORD = {
    "rule": "measure",
    "started": "2026-01-01T00:00:00+00:00",
    "ended": "2026-01-01T00:00:09+00:00",
}


def job(folder, name, benchmark=None, **environment):
    if benchmark:
        path = folder / "benchmarks" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(BENCHMARK.format(*benchmark))
    if environment:
        path = folder / "logs" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**RECORD, "environment": environment}))


def test_jobs_have_the_environment_and_the_cost_of_their_own(tmp_path):
    job(tmp_path, "a/pythia-1.4b", ("2.5", "100.0", "2.0"), software={"numpy": "2"})
    job(tmp_path, "a/two", ("1.5", "300.0", "1.0"), software={"numpy": "1"})
    job(tmp_path, "a/three", ("0.2", "0.00", "0.00"), software={"numpy": "2"})
    job(tmp_path, "b/old", ("4.0", "NA", "-"))  # it left no record
    jobs = read_jobs(tmp_path / "logs", tmp_path / "benchmarks")
    assert [each["software"]["numpy"] for each in environments(jobs)] == ["2", "1"]
    rows = {row[1]: (row[0], row[2], *row[5:]) for row in job_rows(jobs)}
    assert rows == {
        "a/pythia-1.4b": ("measure", 1, 2.5, 2.0, 100.0),
        "a/two": ("measure", 2, 1.5, 1.0, 300.0),
        "a/three": ("measure", 1, 0.2, None, None),  # too short to be sampled
        "b/old": ("b", None, 4.0, None, None),
    }
    assert rule_rows(jobs) == [("measure", 3, 4.2, 3.0, 2.5, 300.0), ("b", 1, 4.0, None, 4.0, None)]

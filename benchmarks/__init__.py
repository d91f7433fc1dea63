"""Measurements that docs/ states: speed, coverage, wrong verdicts. `python -m benchmarks.NAME`."""

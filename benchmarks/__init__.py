"""Measurements that docs/ states: speed, coverage, wrong verdicts. `PYTHONPATH=workflow python -m benchmarks.NAME`."""

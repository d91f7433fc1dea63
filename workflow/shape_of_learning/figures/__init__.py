"""The drawing kit of the papers: from tables to PDF, PNG and a CSV of the drawn numbers.

A figure is one function of a paper's ``figures.py``, ``(inputs: FigureInputs, **options) -> Drawing``.
This file imports nothing, so that the rest of the package does not import matplotlib.
"""

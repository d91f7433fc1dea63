"""The drawing kit of the papers: from tidy tables to PDF, PNG and the CSV that is drawn.

A figure is one function of a paper's ``figures.py``, ``(inputs: FigureInputs, **options) -> Drawing``.
Nothing is imported here, so that the rest of the package stays free of matplotlib.
"""

"""The figures: from the tidy table of measurements to PDF, PNG and the CSV that is drawn.

A figure is one function ``draw_...(measurements, models, protocol, ...) -> Drawing`` and one rule.
Nothing is imported here, so that the rest of the package stays free of matplotlib.
"""

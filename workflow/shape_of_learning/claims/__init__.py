"""Claims of papers: statistics with intervals, decision rules in data, and the verdicts that follow."""

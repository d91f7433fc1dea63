"""Estimators of the shape of hidden states, and the steps of the workflow that measures it."""

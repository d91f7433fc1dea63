"""Speed and memory of the library and the workflow, beside peers and the machine's limits.

``make bench`` runs all tables, ``make bench TABLE=estimators`` one. Nothing here is a timed test.
"""

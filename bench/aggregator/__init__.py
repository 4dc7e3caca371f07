"""Speed and memory of a worker, and the time to open ledgers.

May import `estimators` and `sections`. Begin with `throughput`; `sizing` writes docs/sizing.md from the
results.
"""

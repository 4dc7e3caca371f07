"""How fast a worker counts, how much memory it takes, how long ledgers take to open.

May import `bench.estimators`. Begin with `throughput`; `sizing` writes docs/sizing.md from the results.
"""

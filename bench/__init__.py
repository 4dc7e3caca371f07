"""Benchmarks, run by `make bench` and its like.

`comparison` measures this project beside its peers; `aggregator`, `devices`, `estimators` and `poisoning`
measure one thing in depth, `analysis` reading and exporting, `installed` the cost of installing and
importing. Their figures are in `results` and in docs. May import `deniable`. Begin with `comparison`.
"""

"""Benchmarks, run by `make bench` and its like.

<<<<<<< HEAD
`comparison` measures this project beside its peers; `aggregator`, `estimators` and `poisoning` measure one
thing in depth, `devices` what devices reach, `installed` the cost of installing and importing. Their figures
are in `results` and in docs.
May import `estimators`, `producers`, `relay`, `edge`, `aggregator` and
`deploy`. Begin with `comparison`.
=======
`comparison` measures this project beside its peers; `aggregator`, `devices`, `estimators` and `poisoning`
measure one thing in depth, `installed` the cost of installing and importing. Their figures are in `results`
and in docs. May import `estimators`, `producers`, `edge`, `aggregator` and `deploy`. Begin with `comparison`.
>>>>>>> wip-edge
"""

"""Benchmarks: `python -m bench`, or `make bench`, measures the cases of `parts` and keeps them as `sections`.

Each module with CASES measures some: `comparison` beside peers, `aggregator`, `devices`, `producers`,
`estimators` and `poisoning` one thing in depth, `analysis` reading and exporting. Their figures are in
`results` and in docs. May import `deniable`. Begin with `parts`.
"""

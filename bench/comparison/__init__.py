"""`make bench`: this project and its alternatives, in one run on one machine.

`parts` defines what is measured, `runners` holds the jobs of child processes, `timing` times them, and
`report` writes the results. May import `bench.aggregator` and `bench.estimators`. Begin with `__main__`.
"""

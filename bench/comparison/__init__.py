"""`make bench`: this project and its alternatives, in one run on one machine.

`parts` defines what is measured, `runners` holds the jobs of child processes, `timing` times them, and
`report` writes the results; `delays` is one of our own. May import `estimators`, `aggregator` and `devices`,
as may its sub-packages. Begin with `__main__`.
"""

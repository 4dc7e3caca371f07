"""`make bench`: this project and what users would pick instead, in one run on one machine.

`parts` says what is measured, `runners` what child processes run, `timing` how, `report` writes the results.
May import `bench.aggregator` and `bench.estimators`. Begin with `__main__`.
"""

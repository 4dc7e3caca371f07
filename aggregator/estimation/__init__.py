"""From the counts of all partitions to an estimate of each window, on time and once per revision.

May import `ledger`, `topics`, `records` and `metrics`. Begin with `estimator`, which decides when; the
numbers come from `window_estimate`. `growing` finds the texts that a growing collection lists.
"""

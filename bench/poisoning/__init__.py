"""Effect of forged reports on estimates, and the detectors that find them.

May import `estimators` and `sections`. Begin with `poisoning`.
"""

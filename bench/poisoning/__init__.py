"""What forged reports do to estimates, and which detectors find them.

May import `bench.estimators`. Begin with `poisoning`.
"""

"""Estimating k-RR windows: MLE* beside iterative Bayesian update, and beside a sort of the same numbers.

Begin with `estimation`.
"""

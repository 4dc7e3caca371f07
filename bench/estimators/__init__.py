"""How good estimates are: coverage of the intervals, and the comparison of the MLE* poster.

Imports no other room of `bench`. Begin with `coverage`.
"""

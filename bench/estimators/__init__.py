"""Quality of estimates: coverage of the intervals, and the comparison of the MLE* poster.

Imports no other package of `bench`. Begin with `coverage`.
"""

"""Estimates of pairs: coverage of their intervals, and what pairs of each mechanism cost.

May import `populations` and `simulation`. Begin with `coverage`; `mechanisms` compares errors, `costs` time
and counters.
"""

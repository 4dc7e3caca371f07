"""The privacy loss of one or more reports: exact loss distributions, and four bounds on epsilon from them.

May import `mechanisms` and `arrays`. Begin with `accountant`, which computes all four bounds.
"""

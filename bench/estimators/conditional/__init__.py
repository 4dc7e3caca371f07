"""Conditional coverage of every kind of estimate: fixed clients, and only noise drawn anew, as one table.

May import `coverage` and `populations`. Begin with `judging`.
"""

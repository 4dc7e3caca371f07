"""Conditional coverage of every kind of estimate: fixed clients, and only noise drawn anew.

May import `coverage` and `populations`. Begin with `judging`.
"""

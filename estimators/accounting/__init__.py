"""What reports cost in privacy: exact loss distributions, and the bounds derived from them.

May import `mechanisms` and `arrays`. Begin with `accountant`, which takes the tightest of the bounds.
"""

"""Primitives for threads, signal handlers and forked children.

May import `errors`. Begin with `synchronization`, which states the one rule: callers hold no lock.
"""

"""Primitives for threads, signal handlers and forked children.

Imports no other room. Begin with `synchronization`, which states the one rule: callers hold no lock.
"""

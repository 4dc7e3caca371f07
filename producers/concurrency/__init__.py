"""What threads, signal handlers and forked children need to work together.

Imports no other room. Begin with `synchronization`, which states the one rule: callers hold no lock.
"""

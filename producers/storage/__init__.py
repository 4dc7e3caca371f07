"""The store: one SQLite file per producer folder, with the outbox and the progress of input files.

May import `randomization` for the secret's identity, and `concurrency`. Begin with `store`, then `outbox`.
"""

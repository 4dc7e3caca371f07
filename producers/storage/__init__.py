"""The store: one SQLite file in each producer's folder, with the outbox and the progress of input files.

May import no sibling, for the secret's identity. Begin with `store`, then `outbox`.
"""

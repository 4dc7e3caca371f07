"""Budgets in PostgreSQL, for any number of producers that share a secret and no folder.

May import `budget_store`, `charging` and `stored_rows`. Begin with `budgets`, the store that
`spending` charges, in the tables that `tables` creates and examines. Needs psycopg, the extra `postgres`.
"""

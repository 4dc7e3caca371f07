"""What each client may still report, and what it has spent.

May import `randomization` and `storage`. Begin with `spending`, which a transaction charges; `charging` holds
the rules as pure arithmetic; `budget_store` says where rows are kept: in the folder's store (`local_budgets`)
or in a database (`postgres`).
"""

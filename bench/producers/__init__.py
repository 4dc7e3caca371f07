"""What producers cost: installing and importing them, and budgets in PostgreSQL beside those in a folder.

May import `sections`. Begin with `installed`.
"""

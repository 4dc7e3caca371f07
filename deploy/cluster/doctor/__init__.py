"""`deniable doctor`: an examination in steps, from name resolution to the budgets' database.

May import `finding`, `connection`, `permissions` and `topics`. Begin with `examination`.
"""

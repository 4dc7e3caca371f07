"""`deniable doctor`: an examination in steps, from name resolution to the budgets' database.

May import `edge_answers`, `permissions` and `topics`. Begin with `examination`.
"""

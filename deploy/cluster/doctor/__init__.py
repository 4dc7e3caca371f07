"""`deniable doctor`: an examination in steps, from name resolution to clock skew.

May import `finding`, `connection`, `permissions` and `topics`. Begin with `examination`.
"""

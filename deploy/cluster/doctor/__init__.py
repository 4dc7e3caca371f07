"""`deniable doctor`: an examination in steps, from name resolution to clock skew.

May import the other rooms of `cluster`. Begin with `examination`.
"""

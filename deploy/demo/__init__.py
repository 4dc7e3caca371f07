"""`deniable demo`: a year of flights through a broker of its own, estimates beside the truth.

May import every room but `aggregate`, `query`, `offline` and `monitoring`. Begin with `run`.
"""

"""`deniable demo`: a year of flights through an embedded broker, estimates beside the truth.

May import every room but `aggregate`, `query`, `offline` and `monitoring`. Begin with `run`.
"""

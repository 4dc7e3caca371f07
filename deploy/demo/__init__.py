"""`deniable demo`: a year of flights through an embedded broker, estimates beside the truth.

May import `config`, `cli`, `broker`, `cluster` and `produce`. Begin with `run`.
"""

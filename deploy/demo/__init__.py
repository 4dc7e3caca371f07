"""`deniable demo`: a year of flights through an embedded broker, estimates beside the truth.

May import `config`, `cli`, `broker`, `cluster`, `services` and `produce`. Begin with `run`.
"""

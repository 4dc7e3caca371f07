"""`deniable demo`: a year of flights through an embedded broker, estimates beside the truth.

May import `broker`, `cli`, `cluster`, `produce` and `services`. Begin with `run`.
"""

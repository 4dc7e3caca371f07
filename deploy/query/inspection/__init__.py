"""`deniable inspect`: print the records of topics, in words or as JSON lines.

Begin with `command`; `topic` reads records, `records` and `rows` decode them.
"""

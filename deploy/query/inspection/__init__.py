"""`deniable inspect`: what is in the topics, in words or as JSON lines.

Begin with `command`; `topic` reads, `records` and `rows` describe.
"""

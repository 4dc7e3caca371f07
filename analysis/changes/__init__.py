"""History across changes: estimates of one name under former and present parameters, joined.

May import `errors`, `tables` and `comparison`. Begin with `joined_history`.
"""

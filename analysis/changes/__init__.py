"""History across changes: estimates of one name under former and present parameters, joined.

May import `errors`, `roll_up` and `tables`. Begin with `joined_history`.
"""

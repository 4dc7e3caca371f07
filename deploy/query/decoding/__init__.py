"""`deniable decode`: other strings in the past, listed or found.

May import `past_windows`, `period_options`, `roll_ups` and `tables`. Begin with `decode`; `growing` finds
them without a list; `any_text` answers programs.
"""

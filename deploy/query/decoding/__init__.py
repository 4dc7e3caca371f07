"""`deniable decode`: other strings in the past, listed or found.

May import `past_windows` and `period_options`. Begin with `decode`; `growing` finds them without a list;
`any_text` answers programs.
"""

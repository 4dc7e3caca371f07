"""`deniable detect` and `deniable changes`: forged reports, and changes of shares, in past windows.

May import `inspection`, `past_windows` and `period_options`. Begin with `changes`.
"""

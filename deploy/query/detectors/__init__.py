"""`deniable detect` and `deniable changes`: forged reports, and changes of shares, in past windows.

May import `inspection`, `past_windows`, `period_options` and `value_rows`. Begin with `changes`.
"""

"""Columns of estimates and of windows, and the table that callers get.

May import `errors`. Begin with `arrow_table`; `record_table` is for records of columns.
"""

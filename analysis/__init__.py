"""Where analysts work: estimates and final windows as Arrow tables, in files, and compared.

A library without commands. May import `aggregator`, `cluster`, `config`, `estimators` and `protocol`. Begin
with `tables/arrow_table.py`; `functions` are those that `deniable` offers.

errors          what cannot be read, written or compared
arguments       checks of the types that callers give
periods         the period that a caller asks for
tables          columns of estimates and of windows, and the table that callers get
sources         the topics, files and workers that tables are read from
export          files that hold each window once, whatever is killed
roll_up         the estimates of joined windows, and their table
share_history   what changed in a period, and its shares at every look
differences     shares compared, with intervals and a false-discovery rate
comparison      which shares differ between two periods
"""

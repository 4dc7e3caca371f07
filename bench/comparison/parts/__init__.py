"""What is measured: one file or package for each part of the results.

May import `timing`, `peer_environment`, `report`, `failures` and `runners`, as may its sub-packages. Begin
with `comparison`.
"""

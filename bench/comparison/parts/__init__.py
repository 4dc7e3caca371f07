"""What is measured: one file or package for each part of the results.

May import `runners`, `timing` and `report`. Begin with `comparison`.
"""

"""What is measured: one file, or one room, for each part of the results.

May import `runners`, `timing` and `report`. Begin with `comparison`.
"""

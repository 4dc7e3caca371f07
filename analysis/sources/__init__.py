"""Topics, files and workers that tables are read from.

May import `arguments`, `errors` and `tables`. Begin with `topic`.
"""

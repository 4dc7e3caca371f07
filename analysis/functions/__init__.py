"""The functions of `deniable` that read what workers publish: tables, roll-ups, comparisons, decoding.

May import `arguments`, `changes`, `comparison`, `errors`, `periods`, `roll_up`, `sources` and `tables`.
Begin with `read`; commands call these functions, too.
"""

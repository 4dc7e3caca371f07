"""Commands and functions that read estimates and counts, such as watch, rollup, compare and export.

May import `cli`, `offline` and `services`, as may `inspection` and `decoding`. Begin with `watch`.
"""

"""From the payloads of packs to the counters of windows and cohorts, and which of them changed.

May import `row_keys`, `row_values` and `terms`. Begin with `counts`; `bit_counting` is the arithmetic.
"""

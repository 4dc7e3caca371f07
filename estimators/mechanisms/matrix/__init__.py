"""Channels by their matrix, and those of two fields: k-RR of each, or one bit for each pair of values.

May import `directed_rounding`, `krr`, `rappor_bits` and `rappor_hot`. Begin with `pair`.
"""

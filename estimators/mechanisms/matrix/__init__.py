"""Channels by their matrix, and those of two fields: k-RR of each, or one bit for each pair of values.

May import `directed_rounding`, `krr`, `rappor_bits`, `rappor_hot` and `traits`. Begin with `pair`.
"""

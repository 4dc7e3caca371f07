"""Frequencies of buckets from the bit counts of one-hot and k-hot reports, also where buckets are pairs.

May import `bit_rates`. Begin with `decode`; `pair` adds margins, conditional shares and the test of
independence that `rank_one_test` has.
"""

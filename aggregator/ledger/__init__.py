"""The counts of one partition of `reports`, as a pure fold over its records, and the rows that store them.

No clock and no I/O: the same records give the same rows. May import no sibling. Begin with
`ledger`; `acceptance` decides which packs count, and `runs` does so for many at once; `row_keys` and
`row_values` fix the stored bytes.
"""

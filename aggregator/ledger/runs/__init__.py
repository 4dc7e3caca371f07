"""A run of records of one partition, checked and counted with arrays instead of one record at a time.

Rule: whatever is not plainly good is left to `Ledger.apply`, which alone knows the reasons of rejections. So
these modules only have to be right about good packs. May import `acceptance`, `counting`, `outcomes`,
`pack_ids`, `row_keys` and `terms`. Begin with `run`, then `good_packs`.
"""

"""The records that leave an aggregator: estimates and final windows, with their schema.

May import `ledger`. Begin with `estimate`, the record that everyone reads.
"""

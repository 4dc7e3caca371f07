"""Answers over many final windows: read them from the topic `windows`, add them up, look for forgery.

May import `ledger`, `topics`, `records` and `estimation`. Begin with `rollup`.
"""

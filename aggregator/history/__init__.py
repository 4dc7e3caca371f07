"""Answers over many final windows: read them from the topic `windows`, add them up, look for forgery.

May import `estimation`, `ledger` and `records`. Begin with `rollup`.
"""

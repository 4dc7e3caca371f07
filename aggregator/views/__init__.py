"""The latest estimates in memory, followed from the topic `estimates`.

May import `ledger`, `topics` and `records`. Begin with `latest_estimates`.
"""

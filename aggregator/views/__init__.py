"""The latest estimates in memory, followed from the topic `estimates`.

May import `topics`, `records`, `metrics` and `history`. Begin with `latest_estimates`.
"""

"""The latest estimates in memory, followed from the topic `estimates`.

May import `topics` and `records`. Begin with `latest_estimates`.
"""

"""The worker's web server: live page, JSON API, metrics, probes.

May import `history`, `metrics`, `records` and `views`. Begin with `server`; the page itself is in `page`.
"""

"""The worker's web server: live page, JSON API, metrics, probes.

May import `deployment`, `records`, `metrics`, `history` and `views`. Begin with `server`; the page itself is
in `page`.
"""

"""The results of one run, as Markdown, JSON and pictures.

May import `timing` and `peer_environment`. Begin with `results`.
"""

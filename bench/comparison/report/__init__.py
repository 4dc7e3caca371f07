"""The results of one run, as Markdown, JSON and pictures.

May import `timing`. Begin with `results`.
"""

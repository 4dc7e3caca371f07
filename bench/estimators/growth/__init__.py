"""Frequent strings found without candidates: how many of the most frequent, and beside the published method.

May import `populations`. Begin with `top_strings`; `ngrams` compares, `prefix_reports` simulates the reports.
"""

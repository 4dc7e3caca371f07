"""Estimates of numbers: coverage of their intervals, and errors beside the published method.

May import no sibling. Begin with `number_coverage`; `number_methods` and `published_reports` compare.
"""

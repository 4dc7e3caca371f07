"""Estimates of numbers: coverage of their intervals, and errors beside the published method.

May import `populations` and `simulation`. Begin with `number_coverage`; `number_methods` and
`published_reports` compare.
"""

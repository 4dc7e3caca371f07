"""Intervals for every look, and the change alert: coverage, false alarms, delay, and sizes of changes.

May import `populations`. Begin with `anytime`; `part_changes` begins changes inside a window.
"""

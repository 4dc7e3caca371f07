"""Intervals for all values and every look, and the alert of changes: coverage, false alarms, delay.

May import `populations`. Begin with `anytime`.
"""

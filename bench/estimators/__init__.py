"""Quality of estimates: coverage of the intervals, and the comparison of the MLE* poster.

May import `sections`. Begin with `coverage`; `growth` finds strings without candidates, `numbers` and `pairs`
judge estimates of these.
"""

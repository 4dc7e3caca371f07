"""Linear equations of the bits in the frequencies, and what they say about strings that nobody listed.

May import `design`. Begin with `least_squares`; `unexplained_bits` finds the bits that unlisted strings
raise, `misfit` the error that the others leave.
"""

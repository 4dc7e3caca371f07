"""Unified 95 % intervals of shares between 0 and 1, never empty, never of width 0.

May import `estimate` of the folder above, `mechanisms` and `arrays`. Begin with `acceptance`, the test that
all intervals invert; `unified` is for known standard errors, `two_binomials` for counts of one bucket,
`fieller` for shares of a group that is an estimate, too. `bounded_steps` is for sums that few reports decide,
`saddlepoint` has tails of sums of binomials. `for_all` has intervals for all values at once,
`confidence_sequence` those for every look, by the bound of `bennett_bound`.
"""

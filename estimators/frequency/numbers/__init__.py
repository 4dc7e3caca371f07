"""Parts of the estimate of a number: EM with smoothing, noise of sums of reports, and cells of quantiles.

May import `estimate` and `intervals`. Begin with `smoothed_em`; `number` has the estimate itself.
"""

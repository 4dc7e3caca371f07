"""Parts of the estimate of a number: EM with smoothing, noise of sums of reports, and cells of quantiles.

May import `estimate` and `intervals`. Begin with `smoothed_em`; `number` has the estimate itself. Of the
cells, `quantile_cells` inverts likelihood ratios of distributions, `binomial_cells` tails of counts, for few
reports.
"""

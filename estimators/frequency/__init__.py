"""Estimators of value frequencies from counts of reports, with errors, intervals and significance.

May import `mechanisms` and `arrays`. Begin with `krr`; `estimate` defines what each estimator returns,
`intervals` has the intervals of all of them, `pairs` the joint table of two fields, `numbers` parts of the
estimate of a number.
"""

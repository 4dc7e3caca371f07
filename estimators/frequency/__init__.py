"""Frequencies of values estimated from counts of reports, with their errors.

May import `mechanisms` and `arrays`. Begin with `krr`, which chooses an estimator for a k-RR collection;
`estimate` is what each estimator returns.
"""

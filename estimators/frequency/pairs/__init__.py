"""Pairs of fields: from the table of reported pairs to joint table, margins, conditional shares and a test.

May import `estimate`, `intervals`, `krr` and `significance`. Begin with `estimate`;
`table` has the channel and its inverse, without a matrix of pairs by pairs.
"""

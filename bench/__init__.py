"""Benchmarks that are run by hand: what the estimators are worth, in figures and pictures."""

"""Simulated counts and reference values for tests of estimators."""

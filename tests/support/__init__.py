"""Helpers of tests: a broker, fakes, builders, expected numbers. Each folder serves the tests of its package.

Imported as `tests.support.x`. Begin with `brokers.choice`, which says on which Kafka tests run.
"""

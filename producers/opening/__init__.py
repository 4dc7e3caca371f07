"""The ways to open a producer.

May import `concurrency`, `config`, `errors`, `metrics`, `pipeline`, `producer`, `responders`, `transport`.
Begin with `from_file`; `console_producer` prints what would leave, `double` is a producer for tests.
"""

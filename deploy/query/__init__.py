"""Commands that read estimates and counts from Kafka: watch, decode, detect, rollup, inspect.

May import `config`, `cli`, `cluster` and `offline`. Begin with `watch`.
"""

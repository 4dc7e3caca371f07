"""Commands that read estimates and counts from Kafka: watch, decode, detect, rollup, inspect.

May import `config`, `cli`, `offline` and `cluster`, as may `inspection`. Begin with `watch`.
"""

"""An embedded Kafka broker on this machine, for `deniable broker`, the demo and the tests.

May import `cli`. Begin with `broker`; `process` starts the Java process, `guard` ends it with its parent.
"""

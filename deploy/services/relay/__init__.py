"""`deniable relay`: what devices uploaded is shuffled, packed and sent to the workers.

May import `kafka_wait` and `metrics_server`. Begin with `command`.
"""

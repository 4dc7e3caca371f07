"""`deniable relay`: what devices uploaded is shuffled, packed and sent to the workers.

May import `kafka_wait`, `metrics_server` and `reload`. Begin with `command`.
"""

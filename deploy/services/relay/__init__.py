"""`deniable relay`: what devices uploaded is shuffled, packed and sent to the workers.

May import `metrics_server`. Begin with `command`.
"""

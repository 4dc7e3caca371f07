"""What a worker exposes to Prometheus.

May import `ledger`, `topics` and `records`. Begin with `definitions`, the list of all metrics with their
meaning; `worker_metrics` holds the values.
"""

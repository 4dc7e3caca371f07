"""From a caller's thread to the broker: queue, charging, one transaction, packing, sending.

May import `budget`, `concurrency`, `config`, `errors`, `metrics`, `randomization`, `responders`, `storage`
and `transport`. Begin with `recording`, where values are randomized, then `storing_thread` and
`transactions`; `dispatcher` takes stored packs to the sender; `charging_thread` is for budgets in
PostgreSQL; `queueing` is what waits between threads.
"""

"""From a caller's thread to the broker: queue, randomizing, one transaction, packing, sending.

May import `errors`, `wire`, `concurrency`, `metrics`, `transport`, `randomization`, `storage`, `budget` and
`config`. Begin with `submission_queue`, then `storing_thread` and `transactions`; `dispatcher` takes stored
packs to the sender.
"""

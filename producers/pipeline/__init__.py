"""From a caller's thread to the broker: queue, charging, one transaction, packing, sending.

May import `errors`, `wire`, `concurrency`, `metrics`, `transport`, `randomization`, `storage`, `budget` and
`config`. Begin with `report_pipeline`, then `storing_thread` and `transactions`; `dispatcher`
takes stored packs to the sender; `charging_thread` is for budgets in PostgreSQL.
"""

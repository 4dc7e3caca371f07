"""One owned partition: fetch its records, count them, store the counts exactly once.

The only sub-package that knows Faust (`consumer` and `faust_app`). May import `ledger`, `topics`,
`deployment`, `records`, `metrics` and `estimation`. Begin with `owner`, the life of one partition;
`ledger_store` holds the transactions, `fetching` reads what aiokafka fetched, `timing` the waiting times.
"""

"""From a caller's thread to the broker: queue, randomizing, one transaction, packing, sending.

May import every other room of `producers`. Begin with `submission_queue`, then `storing_thread` and
`transactions`; `dispatcher` takes stored packs to the sender.
"""

"""What each client may still report, and what it has spent.

May import `randomization`, `storage` and `concurrency`. Begin with `spending`, which a transaction charges;
`charging` holds the rules as pure arithmetic.
"""

"""What each client may still report, and what it has spent.

May import `wire`, `randomization` and `storage`. Begin with `spending`, which a transaction charges;
`charging` holds the rules as pure arithmetic.
"""

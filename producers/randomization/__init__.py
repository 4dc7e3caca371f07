"""What makes a value deniable: the secret, random words, permanent responses, randomizers.

May import `concurrency` and `errors`. Begin with `randomizers`; an audit of privacy reads this room alone.
"""

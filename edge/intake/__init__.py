"""Which uploads are taken. Pure, except for the table of rate limits.

May import no sibling. Begin with `acceptance`; `rate_limits` bounds the uploads of one address prefix.
"""

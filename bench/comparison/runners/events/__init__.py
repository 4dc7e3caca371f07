"""One event a call: ours, and what applications call today.

May import no sibling. Begin with `deniable_events`.
"""

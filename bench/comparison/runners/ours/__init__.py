"""Jobs of this project, called as users call it.

May import no sibling. Begin with `deniable_runner`.
"""

"""Jobs of this project, called as users call it.

Begin with `deniable_runner`.
"""

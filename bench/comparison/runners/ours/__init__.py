"""Jobs of this project, called as its users call it.

Begin with `deniable_runner`.
"""

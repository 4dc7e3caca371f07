"""Commands that use only files and no broker: check, plan, account, spent and the two estimates.

May import `config` and `cli` of this package, and the packages below. Begin with `check`.
"""

"""Commands that use only files and no broker: check, plan, account, spent and the two estimates.

May import `cli`. Begin with `check`.
"""

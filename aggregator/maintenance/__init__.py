"""What an operator does to stored counts: recount, compare, rebuild, accept a loss, retire a collection.

May import every other sub-package but `views` and `web`. Begin with `replay`.
"""

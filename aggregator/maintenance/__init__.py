"""What an operator does to stored counts: recount, compare, rebuild, accept a loss, retire a collection.

May import `ledger`, `topics`, `deployment`, `records`, `estimation`, `partition` and `history`. Begin with
`replay`.
"""

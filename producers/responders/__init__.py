"""Check and randomize values, by mechanism.

May import `wire`, `concurrency` and `randomization`. Begin with `factory`, which chooses the responder of a
collection.
"""

"""Check and randomize values, by mechanism.

May import `concurrency` and `randomization`. Begin with `factory`, which chooses the responder of a
collection.
"""

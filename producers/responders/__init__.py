"""Check and randomize values, by mechanism.

May import `randomization`. Begin with `factory`, which chooses the responder of a collection.
"""

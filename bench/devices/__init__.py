"""Speed of what devices reach: the edge and the relay.

May import `aggregator`. Begin with `__main__`; each part is one file, and prints the rows of its table.
"""

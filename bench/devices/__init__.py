"""Speed of devices and of what they reach: the browser client, the edge and the relay.

May import `aggregator`. Begin with `__main__`; each part is one file, and prints the rows of its table.
"""

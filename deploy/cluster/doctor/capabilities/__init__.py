"""What the brokers can do, asked before anything is counted.

May import `brokers` and `case`. Begin with `needs`.
"""

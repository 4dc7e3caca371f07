"""The privacy loss of one or more reports: exact loss distributions, and four bounds on epsilon from them.

May import `mechanisms`, `arrays` and `errors`. Begin with `accountant`, which computes all four bounds;
`shuffling` has the epsilon of reports that were shuffled together.
"""

"""What is said, and done, about values that the collection does not know.

May import `input` of the same folder. Begin with `unknown_values`, for whoever holds the input; where nobody
sees the words, `unknown_reports` decides by the randomized reports alone.
"""

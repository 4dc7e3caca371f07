"""Frequent texts without a list of candidates, from the counts of a prefix tree.

May import `collisions` and `inverted_words`. Begin with `grow`, which grows the tree level by level:
`alphabet` says how prefixes go on, `branches` which are followed, `discovery` which texts are found.
"""

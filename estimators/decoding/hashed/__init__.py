"""Frequencies of candidate strings from the counts of local hashing.

May import no sibling. Begin with `decode`; `support` counts, `collisions` says what hash functions add,
`inverted_words` inverts both, `unlisted_texts` finds frequent ones that nobody listed. `growth` finds
strings without candidates.
"""

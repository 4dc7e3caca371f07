"""The probabilities of the randomizers: k-RR, longitudinal or of pairs, hashing, Square Wave and RAPPOR.

May import `arrays`. Begin with `krr`, then `rappor_bits`, which all RAPPOR variants share; `mechanism` is the
union of all of them.
"""

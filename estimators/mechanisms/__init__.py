"""The probabilities of the randomizers: k-RR, longitudinal or of pairs, subsets, hashing, numbers and RAPPOR.

May import `arrays`. Begin with `traits`, what each mechanism says of itself, then `krr`, and `rappor_bits`,
which all RAPPOR variants share; `mechanism` is the registry of all of them.
"""

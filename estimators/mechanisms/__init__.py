"""The probabilities of the randomizers: k-RR, longitudinal k-RR and the RAPPOR family.

May import `arrays`. Begin with `krr`, then `rappor_bits`, which all RAPPOR variants share; `mechanism` is the
union of all of them.
"""

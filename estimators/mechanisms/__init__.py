"""The randomizers' probabilities: k-RR, longitudinal k-RR and the RAPPOR family.

May import `arrays` alone. Begin with `krr`, then `rappor_bits`, which every RAPPOR shares; `mechanism` is the
union of them all.
"""

"""The probabilities of the randomizers: k-RR, longitudinal or of pairs, subsets, hashing, numbers and RAPPOR.

May import `arrays`. Begin with `traits`, what each mechanism says of itself, then `krr`, and `rappor_bits`,
which all RAPPOR variants share; `mechanism` is the registry of all of them.

A further mechanism of a kind that is here needs its module, `mechanism`, `config.entries`, a randomizer and a
responder in `producers`, and `responders.factory`; `plan` and `account`, which compare by name, may list it.
"""

"""The mathematics: mechanisms, estimators and accounting. No I/O, no clock, no randomness.

May import no sibling, and besides the standard library only numpy and scipy.
Begin with `mechanisms/krr.py`, then `frequency/krr.py`, which inverts it.

mechanisms     the probabilities of each randomizer, and RAPPOR's hashes
frequency      estimates of frequencies, with errors, from counts of reports
decoding       estimates of candidates' frequencies from RAPPOR bit counts
accounting     the privacy loss of one or more reports
collection     the definition of a collection: mechanism, values and windows
planning       expected errors before any report is collected
rollup         one estimate over several windows
canary         known frequencies of a canary; `canary_fit` tests for broken randomizers
detectors      of forged reports, and of changes of a share
"""

"""The mathematics: mechanisms, estimators and accounting. No I/O, no clock, no randomness.

May import numpy and the standard library (scipy where a function says so), and none of the other packages.
Begin with `mechanisms/krr.py`, then `frequency/krr.py`, which inverts it.

mechanisms     the probabilities of each randomizer, and RAPPOR's hashes
frequency      counts of reports to frequencies with errors
decoding       RAPPOR bit counts to frequencies of candidate values
accounting     the privacy cost of reports
collection     what is collected: a mechanism, its values, window and budget
planning       error and cost before any report is collected
rollup         many windows as one estimate
canary, forgery_detectors   signs of broken randomizers and of forged reports
"""

"""The mathematics: mechanisms, hashing, estimators. No input or output, no clock, no randomness.

What a collection is    collection, mechanism
Mechanisms              krr, longitudinal (both symmetric), rappor, rappor_hot (both two_step), channel;
                        bloom hashes, rappor_targets chooses f, p and q
From counts             krr_estimate (inversion, ibu, simplex), rappor_decode (decoding/), rappor_hot_decode,
                        channel_mle, bit_rates, rollup, google_rappor
What reports cost       account (accounting/), logarithm
Before any report       planning
"""

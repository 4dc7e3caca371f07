"""Collections for tests of the producer."""

from dataclasses import replace

from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor

CARRIER = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
LATENCY = Collection("latency", KRR.from_epsilon(1000, 1.0))
BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
DESTINATION = Collection("destination", BLOOM, memoize=True)
# The grace accepts windows of any time.
FREE = tuple(Allowance(replace(each, grace_seconds=10**10), None) for each in (CARRIER, LATENCY, DESTINATION))

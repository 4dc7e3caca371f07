"""Collections for tests of the producer."""

from dataclasses import replace

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.rappor import Rappor
from producers.budget.allowance import Allowance

CARRIER = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
LATENCY = Collection("latency", KRR.from_epsilon(1000, 1.0))
BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
DESTINATION = Collection("destination", BLOOM, memoize=True)
# The grace accepts windows of any time.
FREE = tuple(Allowance(replace(each, grace_seconds=10**10), None) for each in (CARRIER, LATENCY, DESTINATION))

"""The mechanisms that a collection can have."""

from estimators.krr import KRR
from estimators.longitudinal import LongitudinalKRR
from estimators.rappor import Rappor
from estimators.rappor_hot import HotRappor

Mechanism = KRR | LongitudinalKRR | Rappor | HotRappor

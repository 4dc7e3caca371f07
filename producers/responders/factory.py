"""Choose the responder, which randomizes the values of one collection."""

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from producers.randomization.randomness import Words
from producers.randomization.secret import Secret
from producers.responders.batch import Responder
from producers.responders.krr import KRRResponder, LongitudinalResponder
from producers.responders.rappor import BloomResponder, HotResponder


def responder_of(collection: Collection, secret: Secret, words: Words) -> Responder:
    """Build the responder for a collection's mechanism.

    Parameters
    ----------
    collection : Collection.
    secret : that permanent responses are derived from.
    words : source of fresh randomness.

    Raises
    ------
    ValueError if the collection's RAPPOR hashes nothing and lists no values.
    """
    mechanism = collection.mechanism
    if isinstance(mechanism, KRR):
        return KRRResponder(collection, mechanism, words)
    if isinstance(mechanism, LongitudinalKRR):
        return LongitudinalResponder(collection, mechanism, secret, words)
    if isinstance(mechanism, Rappor):
        return BloomResponder(collection, mechanism, secret, words)
    return HotResponder(collection, mechanism, secret, words)

"""Choose the responder, which randomizes the values of one collection."""

from estimators.collection import Collection
from estimators.mechanisms.hashing.local_hash import LocalHash
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from estimators.mechanisms.matrix.pair import PairKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.square_wave import SquareWave
from producers.randomization.randomness import Words
from producers.randomization.secret import Secret
from producers.responders.batch import Responder
from producers.responders.krr import KRRResponder, LongitudinalResponder
from producers.responders.local_hash import HashResponder, LongitudinalHashResponder
from producers.responders.number import NumberResponder
from producers.responders.pair import HotPairResponder, PairResponder
from producers.responders.prefix_tree import PrefixTreeResponder
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
    if isinstance(mechanism, PairKRR):
        return PairResponder(collection, mechanism, words)
    if isinstance(mechanism, OneHotPair):
        return HotPairResponder(collection, mechanism, secret, words)
    if isinstance(mechanism, SquareWave):
        return NumberResponder(collection, mechanism, words)
    if isinstance(mechanism, LocalHash):
        return HashResponder(collection, mechanism, words)
    if isinstance(mechanism, PrefixTree):
        return PrefixTreeResponder(collection, mechanism, secret, words)
    if isinstance(mechanism, LongitudinalHash):
        return LongitudinalHashResponder(collection, mechanism, secret, words)
    if isinstance(mechanism, Rappor):
        return BloomResponder(collection, mechanism, secret, words)
    return HotResponder(collection, mechanism, secret, words)

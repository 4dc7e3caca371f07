"""Choose the responder, which randomizes the values of one collection."""

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.subset_selection import SubsetSelection
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.batch import Responder
from deniable.producers.responders.krr import LongitudinalResponder, krr_responder, subset_responder
from deniable.producers.responders.local_hash import HashResponder, LongitudinalHashResponder
from deniable.producers.responders.number import NumberResponder
from deniable.producers.responders.pair import HotPairResponder, PairResponder
from deniable.producers.responders.prefix_tree import PrefixTreeResponder
from deniable.producers.responders.rappor import BloomResponder, HotResponder
from deniable.protocol.secrets.secret import Secret


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
    match collection.mechanism:
        case KRR() as mechanism:
            return krr_responder(collection, mechanism, words)
        case LongitudinalKRR() as mechanism:
            return LongitudinalResponder(collection, mechanism, secret, words)
        case PairKRR() as mechanism:
            return PairResponder(collection, mechanism, words)
        case OneHotPair() as mechanism:
            return HotPairResponder(collection, mechanism, secret, words)
        case SquareWave() as mechanism:
            return NumberResponder(collection, mechanism, words)
        case LocalHash() as mechanism:
            return HashResponder(collection, mechanism, words)
        case PrefixTree() as mechanism:
            return PrefixTreeResponder(collection, mechanism, secret, words)
        case LongitudinalHash() as mechanism:
            return LongitudinalHashResponder(collection, mechanism, secret, words)
        case Rappor() as mechanism:
            return BloomResponder(collection, mechanism, secret, words)
        case SubsetSelection() as mechanism:
            return subset_responder(collection, mechanism, words)
        case mechanism:
            return HotResponder(collection, mechanism, secret, words)

"""The public face of deniable: what an application imports.

    import deniable

    with deniable.open_producer("deniable.yaml") as producer:
        producer.report("carrier", "AA", clients="client-17")

    week = deniable.read_estimates("deniable.yaml", collection="carrier", last="7d").to_pandas()

The only `__init__` of the project with names in it, since applications should depend on these and on nothing
deeper: every type of a signature, and of what it takes and returns, is here. Nothing inside the project
imports it. May import everything, each name when it is first used; begin with `open_producer`.
"""

from importlib import import_module

# Type checkers take this name for true. It is false, but jedi does not evaluate `bool()`: after a literal
# False it would not complete the names below. To import `typing` would take most of this module's time.
TYPE_CHECKING = bool()  # noqa: UP018
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deniable.analysis.errors import AnalysisError as AnalysisError
    from deniable.analysis.functions.decoding import decode as decode
    from deniable.analysis.functions.decoding import grow as grow
    from deniable.analysis.functions.read import read_estimates as read_estimates
    from deniable.analysis.functions.read import read_windows as read_windows
    from deniable.analysis.functions.roll_ups import compare as compare
    from deniable.analysis.functions.roll_ups import rollup as rollup
    from deniable.analysis.tables.arrow_table import ArrowTable as ArrowTable
    from deniable.cluster.cluster import Cluster as Cluster
    from deniable.cluster.credential_files import SecurityError as SecurityError
    from deniable.cluster.security import Security as Security
    from deniable.config.file import CollectionFileError as CollectionFileError
    from deniable.config.file import Configuration as Configuration
    from deniable.config.file import load as load
    from deniable.config.sections import BudgetStoreSection as BudgetStoreSection
    from deniable.config.sections import EdgeSection as EdgeSection
    from deniable.config.sections import KafkaSection as KafkaSection
    from deniable.config.sections import ProducerSection as ProducerSection
    from deniable.config.sections import RelaySection as RelaySection
    from deniable.config.sections import SecuritySection as SecuritySection
    from deniable.config.settings.allowance import Allowance as Allowance
    from deniable.config.settings.allowance import Budget as Budget
    from deniable.config.settings.budget_database import BudgetDatabase as BudgetDatabase
    from deniable.config.settings.edge_address import EdgeAddress as EdgeAddress
    from deniable.estimators.collection import Collection as Collection
    from deniable.estimators.collection import Field as Field
    from deniable.estimators.collection import GrowthRule as GrowthRule
    from deniable.estimators.errors import DeniableError as DeniableError
    from deniable.estimators.mechanisms.hashing.local_hash import LocalHash as LocalHash
    from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash as LongitudinalHash
    from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree as PrefixTree
    from deniable.estimators.mechanisms.krr import KRR as KRR
    from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR as LongitudinalKRR
    from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair as OneHotPair
    from deniable.estimators.mechanisms.matrix.pair import PairKRR as PairKRR
    from deniable.estimators.mechanisms.rappor import Rappor as Rappor
    from deniable.estimators.mechanisms.rappor_hot import HotRappor as HotRappor
    from deniable.estimators.mechanisms.square_wave import SquareWave as SquareWave
    from deniable.estimators.mechanisms.subset_selection import SubsetSelection as SubsetSelection
    from deniable.estimators.mechanisms.traits import QuestionKind as QuestionKind
    from deniable.producers.concurrency.timing import ProducerTiming as ProducerTiming
    from deniable.producers.config import ProducerConfig as ProducerConfig
    from deniable.producers.errors import ClosedError as ClosedError
    from deniable.producers.errors import DeliveryError as DeliveryError
    from deniable.producers.metrics.counters import Backlog as Backlog
    from deniable.producers.metrics.counters import Counters as Counters
    from deniable.producers.metrics.counters import Receipt as Receipt
    from deniable.producers.producer import Producer as Producer
    from deniable.producers.responders.validation import Clients as Clients
    from deniable.producers.responders.validation import EventTime as EventTime
    from deniable.producers.responders.validation import EventValue as EventValue
    from deniable.producers.responders.validation import Times as Times
    from deniable.producers.responders.validation import Values as Values
    from deniable.producers.storage.store import StoreError as StoreError
    from deniable.protocol.secrets.secret import SecretError as SecretError
    from deniable.protocol.topic_names import Topics as Topics

#: Where each name is, imported when it is first used: `import deniable` alone loads nothing.
PLACES = {
    "Allowance": "deniable.config.settings.allowance",
    "AnalysisError": "deniable.analysis.errors",
    "ArrowTable": "deniable.analysis.tables.arrow_table",
    "Backlog": "deniable.producers.metrics.counters",
    "Budget": "deniable.config.settings.allowance",
    "BudgetDatabase": "deniable.config.settings.budget_database",
    "BudgetStoreSection": "deniable.config.sections",
    "Clients": "deniable.producers.responders.validation",
    "ClosedError": "deniable.producers.errors",
    "Cluster": "deniable.cluster.cluster",
    "Collection": "deniable.estimators.collection",
    "CollectionFileError": "deniable.config.file",
    "Configuration": "deniable.config.file",
    "Counters": "deniable.producers.metrics.counters",
    "DeliveryError": "deniable.producers.errors",
    "DeniableError": "deniable.estimators.errors",
    "EdgeAddress": "deniable.config.settings.edge_address",
    "EdgeSection": "deniable.config.sections",
    "EventTime": "deniable.producers.responders.validation",
    "EventValue": "deniable.producers.responders.validation",
    "Field": "deniable.estimators.collection",
    "GrowthRule": "deniable.estimators.collection",
    "HotRappor": "deniable.estimators.mechanisms.rappor_hot",
    "KRR": "deniable.estimators.mechanisms.krr",
    "KafkaSection": "deniable.config.sections",
    "LocalHash": "deniable.estimators.mechanisms.hashing.local_hash",
    "LongitudinalHash": "deniable.estimators.mechanisms.hashing.longitudinal_hash",
    "LongitudinalKRR": "deniable.estimators.mechanisms.longitudinal_krr",
    "OneHotPair": "deniable.estimators.mechanisms.matrix.one_hot_pair",
    "PairKRR": "deniable.estimators.mechanisms.matrix.pair",
    "PrefixTree": "deniable.estimators.mechanisms.hashing.prefix_tree",
    "Producer": "deniable.producers.producer",
    "ProducerConfig": "deniable.producers.config",
    "ProducerSection": "deniable.config.sections",
    "ProducerTiming": "deniable.producers.concurrency.timing",
    "QuestionKind": "deniable.estimators.mechanisms.traits",
    "Rappor": "deniable.estimators.mechanisms.rappor",
    "Receipt": "deniable.producers.metrics.counters",
    "RelaySection": "deniable.config.sections",
    "SecretError": "deniable.protocol.secrets.secret",
    "Security": "deniable.cluster.security",
    "SecurityError": "deniable.cluster.credential_files",
    "SecuritySection": "deniable.config.sections",
    "SquareWave": "deniable.estimators.mechanisms.square_wave",
    "StoreError": "deniable.producers.storage.store",
    "SubsetSelection": "deniable.estimators.mechanisms.subset_selection",
    "Times": "deniable.producers.responders.validation",
    "Topics": "deniable.protocol.topic_names",
    "Values": "deniable.producers.responders.validation",
    "compare": "deniable.analysis.functions.roll_ups",
    "decode": "deniable.analysis.functions.decoding",
    "grow": "deniable.analysis.functions.decoding",
    "load": "deniable.config.file",
    "read_estimates": "deniable.analysis.functions.read",
    "read_windows": "deniable.analysis.functions.read",
    "rollup": "deniable.analysis.functions.roll_ups",
}

__all__ = ["open_producer", *PLACES]


if not TYPE_CHECKING:  # to type checkers, all names are those above

    def __getattr__(name: str) -> object:
        """Import one of PLACES when it is first used.

        Raises
        ------
        AttributeError for other names.
        """
        if name not in PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            found = globals()[name] = getattr(import_module(PLACES[name]), name)
        except ModuleNotFoundError as absent:
            if absent.name is None or absent.name.partition(".")[0] == __name__:
                raise
            return _lacking(name, absent.name)
        return found


def _lacking(name: str, package: str) -> object:
    """Return a function that lacks its extra: calling it raises AnalysisError, looking at it does not."""

    def function(*_: object, **__: object) -> None:
        from deniable.analysis.errors import needed

        needed(package, f"deniable.{name}", "pip install 'deniable[analysis]'")

    function.__name__ = function.__qualname__ = name
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *PLACES})


# What a test opens in place of a producer: `open_producer` itself may have been imported before.
_stand_in: "Callable[[], Producer] | None" = None


def open_producer(path: "str | Path", *, console: bool = False) -> "Producer":
    """Open a producer for all collections of a collection file. A context manager: leaving it closes.

    The folder of secret, budgets and outbox is created beside the file when it is missing. Kafka, or the
    edge that the file delivers to, need not be reachable: reports are stored in the folder until it is.

    Parameters
    ----------
    path : of the collection file, such as `deniable.yaml`.
    console : True to print what would leave on stdout, a JSON line for each pack, and send nothing; with a
        secret and budgets that end with the producer, while those of the file stay as they are.

    Raises
    ------
    CollectionFileError if the file cannot be used, or user name or password is missing.
    SecretError, StoreError, SecurityError if the folder, the secret or a credential file cannot be used.
    """
    if _stand_in is not None:
        return _stand_in()
    from deniable.config.file import load
    from deniable.producers.opening.from_file import producer_config
    from deniable.producers.producer import Producer

    if console:
        from deniable.producers.opening.console_producer import open_on_console

        return open_on_console(load(path))
    return Producer(producer_config(load(path)))

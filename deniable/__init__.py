"""The public face of deniable: what an application imports.

    import deniable

    with deniable.open_producer("deniable.yaml") as producer:
        producer.report("carrier", "AA", clients="client-17")

    week = deniable.read_estimates("deniable.yaml", collection="carrier", last="7d").to_pandas()

The only `__init__` of the project with names in it, since applications should depend on these and on nothing
deeper: every type of a signature, and of what it takes and returns, is here. Nothing inside the project
imports it. May import everything; begin with `open_producer`.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

_deploy = find_spec("deploy")
_found = None if _deploy is None else _deploy.origin or str(_deploy.submodule_search_locations)
if _found != str(Path(__file__).parents[1] / "deploy" / "__init__.py"):
    raise ImportError(f"another package called 'deploy' hides deniable's: {_found}", name="deploy")

from deploy.cli.hidden_packages import refuse_hidden_packages  # noqa: E402

refuse_hidden_packages()

from aggregator.topics.names import Topics  # noqa: E402
from deploy.config.file import CollectionFileError, Configuration, load  # noqa: E402
from deploy.config.producer import producer_config  # noqa: E402
from deploy.config.sections import (  # noqa: E402
    BudgetStoreSection,
    EdgeSection,
    KafkaSection,
    ProducerSection,
    RelaySection,
    SecuritySection,
)
from estimators.collection import Collection, Field, GrowthRule  # noqa: E402
from estimators.errors import DeniableError  # noqa: E402
from estimators.mechanisms.hashing.local_hash import LocalHash  # noqa: E402
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash  # noqa: E402
from estimators.mechanisms.hashing.prefix_tree import PrefixTree  # noqa: E402
from estimators.mechanisms.krr import KRR  # noqa: E402
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR  # noqa: E402
from estimators.mechanisms.matrix.one_hot_pair import OneHotPair  # noqa: E402
from estimators.mechanisms.matrix.pair import PairKRR  # noqa: E402
from estimators.mechanisms.rappor import Rappor  # noqa: E402
from estimators.mechanisms.rappor_hot import HotRappor  # noqa: E402
from estimators.mechanisms.square_wave import SquareWave  # noqa: E402
from producers.budget.allowance import Allowance, Budget  # noqa: E402
from producers.budget.postgres.database import BudgetDatabase  # noqa: E402
from producers.concurrency.timing import ProducerTiming  # noqa: E402
from producers.config import ProducerConfig  # noqa: E402
from producers.errors import ClosedError, DeliveryError  # noqa: E402
from producers.metrics.counters import Backlog, Counters, Receipt  # noqa: E402
from producers.randomization.secret import SecretError  # noqa: E402
from producers.responders.validation import Clients, EventTime, EventValue, Times, Values  # noqa: E402
from producers.storage.store import StoreError  # noqa: E402
from producers.transport.cluster import Cluster  # noqa: E402
from producers.transport.credential_files import SecurityError  # noqa: E402
from producers.transport.edge.address import EdgeAddress  # noqa: E402
from producers.transport.security import Security  # noqa: E402

if TYPE_CHECKING:
    from analysis.errors import AnalysisError
    from analysis.tables.arrow_table import ArrowTable
    from deploy.query.decoding.any_text import decode, grow
    from deploy.query.roll_ups import compare, rollup
    from deploy.query.tables import read_estimates, read_windows
    from producers.producer import Producer

#: What is imported when it is first used, and where it is: these bring clients of Kafka, scipy or pyarrow.
LATE = {
    "AnalysisError": "analysis.errors",
    "ArrowTable": "analysis.tables.arrow_table",
    "Producer": "producers.producer",
    "compare": "deploy.query.roll_ups",
    "decode": "deploy.query.decoding.any_text",
    "grow": "deploy.query.decoding.any_text",
    "read_estimates": "deploy.query.tables",
    "read_windows": "deploy.query.tables",
    "rollup": "deploy.query.roll_ups",
}

__all__ = [
    "KRR",
    "Allowance",
    "AnalysisError",
    "ArrowTable",
    "Backlog",
    "Budget",
    "BudgetDatabase",
    "BudgetStoreSection",
    "Clients",
    "ClosedError",
    "Cluster",
    "Collection",
    "CollectionFileError",
    "Configuration",
    "Counters",
    "DeliveryError",
    "DeniableError",
    "EdgeAddress",
    "EdgeSection",
    "EventTime",
    "EventValue",
    "Field",
    "GrowthRule",
    "HotRappor",
    "KafkaSection",
    "LocalHash",
    "LongitudinalHash",
    "LongitudinalKRR",
    "OneHotPair",
    "PairKRR",
    "PrefixTree",
    "Producer",
    "ProducerConfig",
    "ProducerSection",
    "ProducerTiming",
    "Rappor",
    "Receipt",
    "RelaySection",
    "SecretError",
    "Security",
    "SecurityError",
    "SecuritySection",
    "SquareWave",
    "StoreError",
    "Times",
    "Topics",
    "Values",
    "compare",
    "decode",
    "grow",
    "load",
    "open_producer",
    "read_estimates",
    "read_windows",
    "rollup",
]


def __getattr__(name: str) -> Any:
    """Import one of LATE when it is first used.

    Raises
    ------
    AttributeError for other names.
    """
    if name not in LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(LATE[name]), name)


def open_producer(path: str | Path) -> "Producer":
    """Open a producer for all collections of a collection file. A context manager: leaving it closes.

    The folder of secret, budgets and outbox is created beside the file when it is missing. Kafka, or the
    edge that the file delivers to, need not be reachable: reports are stored in the folder until it is.

    Parameters
    ----------
    path : of the collection file, such as `deniable.yaml`.

    Raises
    ------
    CollectionFileError if the file cannot be used, or user name or password is missing.
    SecretError, StoreError, SecurityError if the folder, the secret or a credential file cannot be used.
    """
    from producers.producer import Producer

    return Producer(producer_config(load(Path(path))))

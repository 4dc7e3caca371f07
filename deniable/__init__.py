"""The public face of deniable: what an application imports.

    import deniable

    with deniable.open_producer("deniable.yaml") as producer:
        producer.report("carrier", "AA", clients="client-17")

The only `__init__` of the project with names in it, since applications should depend on these and on nothing
deeper. Nothing inside the project imports it. May import everything; begin with `open_producer`.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

_deploy = find_spec("deploy")
_found = None if _deploy is None else _deploy.origin or str(_deploy.submodule_search_locations)
if _found != str(Path(__file__).parents[1] / "deploy" / "__init__.py"):
    raise ImportError(f"another package called 'deploy' hides deniable's: {_found}", name="deploy")

from deploy.cli.hidden_packages import refuse_hidden_packages  # noqa: E402

refuse_hidden_packages()

from deploy.config.file import CollectionFileError, Configuration, load  # noqa: E402
from deploy.config.producer import producer_config  # noqa: E402
from estimators.errors import DeniableError  # noqa: E402
from producers.config import ProducerConfig  # noqa: E402
from producers.errors import ClosedError, DeliveryError  # noqa: E402
from producers.metrics.counters import Backlog, Counters, Receipt  # noqa: E402
from producers.randomization.secret import SecretError  # noqa: E402
from producers.responders.validation import Clients, EventTime, EventValue, Times, Values  # noqa: E402
from producers.storage.store import StoreError  # noqa: E402
from producers.transport.credential_files import SecurityError  # noqa: E402

if TYPE_CHECKING:
    from producers.producer import Producer

__all__ = [
    "Backlog",
    "Clients",
    "ClosedError",
    "CollectionFileError",
    "Configuration",
    "Counters",
    "DeliveryError",
    "DeniableError",
    "EventTime",
    "EventValue",
    "Producer",
    "ProducerConfig",
    "Receipt",
    "SecretError",
    "SecurityError",
    "StoreError",
    "Times",
    "Values",
    "load",
    "open_producer",
]


def __getattr__(name: str) -> Any:
    """Import `Producer` when it is first used: with it come the clients of Kafka and Prometheus.

    Raises
    ------
    AttributeError for other names.
    """
    if name != "Producer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from producers.producer import Producer

    return Producer


def open_producer(path: str | Path) -> "Producer":
    """Open a producer for all collections of a collection file. A context manager: leaving it closes.

    The folder of secret, budgets and outbox is created beside the file when it is missing. Kafka need not be
    reachable: reports are stored in the folder until it is.

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

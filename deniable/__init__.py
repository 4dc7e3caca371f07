"""The public face of deniable: what an application imports.

    import deniable

    with deniable.open_producer("deniable.yaml") as producer:
        producer.report("carrier", "AA", clients="client-17")

The only `__init__` of the project with names in it, since applications should depend on these and on nothing
deeper. Nothing inside the project imports it. May import everything; begin with `open_producer`.
"""

from importlib.util import find_spec
from pathlib import Path

# The packages have common names. Where an application has a package of the same name, Python would take
# functions from the wrong one, or fail far from the cause.
for _name in ("estimators", "producers", "aggregator", "deploy"):
    _spec = find_spec(_name)
    _found = None if _spec is None else _spec.origin or str(_spec.submodule_search_locations)
    if _found != str(Path(__file__).parents[1] / _name / "__init__.py"):
        raise ImportError(f"another package called {_name!r} hides deniable's: {_found}", name=_name)

# deploy first: it sets OPENBLAS_NUM_THREADS, which numpy reads when it is imported.
from deploy.config.file import Configuration, load  # noqa: E402
from deploy.config.producer import producer_config  # noqa: E402
from producers.config import ProducerConfig  # noqa: E402
from producers.errors import ClosedError, DeliveryError  # noqa: E402
from producers.metrics.counters import Counters, Receipt  # noqa: E402
from producers.producer import Producer  # noqa: E402

__all__ = [
    "ClosedError",
    "Configuration",
    "Counters",
    "DeliveryError",
    "Producer",
    "ProducerConfig",
    "Receipt",
    "load",
    "open_producer",
]


def open_producer(path: str | Path) -> Producer:
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
    return Producer(producer_config(load(Path(path))))

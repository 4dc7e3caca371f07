"""Points of a producer where it can be killed; runs in its process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deniable.producers.pipeline import transactions
from deniable.producers.storage.store import Store
from deniable.producers.transport.sender import Delivery
from tests.support.processes import FaultPoints


def install(points: FaultPoints) -> None:
    """Patch the points into the store and the delivery.

    `progress`: how far an input was read is written, and not committed; `before-commit`: a transaction has
    written all; `after-commit`: it is on the disk, and nobody was told or sent anything; `acknowledged`:
    Kafka has a pack that the outbox still has.
    """
    transaction, acknowledge = Store.transaction, Delivery._acknowledge
    set_progress = transactions.set_progress

    @contextmanager
    def with_points(self: Store) -> Iterator[None]:
        with transaction(self):
            yield
            points.at("before-commit")
        points.at("after-commit")

    def acknowledge_later(self: Delivery, *arguments: Any) -> None:
        points.at("acknowledged")
        acknowledge(self, *arguments)

    def progress(*arguments: Any) -> None:
        set_progress(*arguments)
        points.at("progress")

    Store.transaction = with_points
    transactions.set_progress = progress
    Delivery._acknowledge = acknowledge_later

"""Broken workers, each without one of the three foundations of exact counts; the suite must detect them.

They patch the worker's process, not the product's code.
"""

import uuid
from typing import Any

from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition import ledger_store
from deniable.aggregator.partition.consumer import Consumer
from deniable.aggregator.partition.fetching.offset_chain import OffsetChain
from deniable.aggregator.partition.owner import PartitionOwner
from deniable.protocol.topic_names import Topics

HANGING_MILLISECONDS = 10_000


def no_fencing() -> None:
    """Every producer has a different transactional id, so a former owner can still write.

    Kafka aborts a transaction left open by a former owner only after a while. Until then, readers of
    committed rows would wait, and the run would end without a verdict.
    """
    ledger_store.TRANSACTION_MILLISECONDS = HANGING_MILLISECONDS

    def transactional_id(self: Topics, partition: int) -> str:
        return f"{self.group}-{partition}-{uuid.uuid4().hex}"

    Topics.transactional_id = transactional_id


def no_gate() -> None:
    """Every record delivered while a ledger is open counts, in any order."""
    offer = PartitionOwner.offer

    class Agreeable:
        """Replacement for a chain: all delivered records count as the next ones."""

        def following(self, _: int, offsets: Any) -> slice:
            return slice(0, len(offsets))

    class AnyChain:
        def chain(self, _: int) -> Any:
            return Agreeable()

    def offer_anything(self: PartitionOwner, run: Run) -> None:
        source, self.source = self.source, AnyChain()
        try:
            offer(self, run)
        finally:
            self.source = source

    PartitionOwner.offer = offer_anything


def no_rewind() -> None:
    """The chain restarts at the stored position, but fetching does not go back."""

    async def rewind(self: Consumer, partition: int, position: int, _last: object = None) -> None:
        self._chains[partition] = OffsetChain(position)

    Consumer.rewind = rewind


DEFECTS = {"no-fencing": no_fencing, "no-gate": no_gate, "no-rewind": no_rewind}

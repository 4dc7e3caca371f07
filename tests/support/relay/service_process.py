"""The real `deniable relay`, which can be killed or stopped between any two steps of a batch.

python -m tests.support.relay.service_process FILE JSON

With `assigned` it takes all partitions without a group protocol, so nothing fences it: two of them work on
each partition at once. With `loses_packs` it sends none. A `defect` takes away a foundation of exact counts.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from aiokafka import TopicPartition

from deploy.cli.logs import configure_logs
from deploy.services.relay.command import relay
from producers.transport.uploads.id_set import IdSet
from producers.wire import PACK_ID_BYTES
from relay.keys import RelayKeys
from relay.service.delivery import PackDelivery
from relay.service.group import RelayGroup
from tests.support.relay.relay_process import Strike, shorten_lives


def armed(at: Callable[[str], None], loses_packs: bool = False) -> None:
    """Call `at` with each step of the loop, before it is taken: `before`, `in`, `after` and `marker`."""
    send, commit = PackDelivery.send, RelayGroup.commit
    append = PackDelivery.append

    async def before_and_in(self: Any, records: Any, is_wanted: Any) -> bool:
        at("before")
        if loses_packs:
            records = [each for each in records if not each.topic.endswith("-reports")]
        half = len(records) // 2
        await send(self, records[:half], is_wanted)
        at("in")
        return await send(self, records[half:], is_wanted)

    async def after(self: Any, partition: int, position: Any) -> None:
        at("after")
        await commit(self, partition, position)

    async def marker(self: Any, topic: str, partition: int, value: bytes) -> int | None:
        at("marker")
        return await append(self, topic, partition, value)

    PackDelivery.send = before_and_in
    RelayGroup.commit = after
    PackDelivery.append = marker


def unfenced(partitions: int) -> None:
    """Assign all partitions."""

    async def start(self: Any) -> None:
        await self._admin.start()
        await self._consumer.start()
        self._consumer.assign([TopicPartition(self._topic, each) for each in range(partitions)])
        self.turns.on_partitions_assigned(())

    RelayGroup.start = start


def without_upload_ids() -> None:
    """Every upload counts as new."""
    IdSet.add = lambda self, low, high: None


def with_fresh_pack_ids() -> None:
    """A batch that is sent again has other packs."""
    RelayKeys.pack_id = lambda self, context, number: os.urandom(PACK_ID_BYTES)


DEFECTS = {"no upload ids": without_upload_ids, "fresh pack ids": with_fresh_pack_ids}


def main() -> None:
    file, order = sys.argv[1], json.loads(sys.argv[2])
    configure_logs()
    shorten_lives(order["early_seconds"])
    armed(Strike(order).at, order.get("loses_packs", False))
    if "defect" in order:
        DEFECTS[order["defect"]]()
    if order.get("assigned"):
        unfenced(order["partitions"])
    relay.main(["--config", file], prog_name="deniable relay")


if __name__ == "__main__":
    main()

"""The real `deniable relay`, which can be killed or stopped between any two steps of a batch.

python -m tests.support.relay.relay_process FILE JSON

With `assigned` it takes all partitions without a group protocol, so nothing fences it: two of them work on
each partition at once. With `loses_packs` it sends none.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka import TopicPartition

from deniable.cluster.connection.groups import RELAYS
from deniable.deploy.cli.logs import configure_logs
from deniable.deploy.services.relay.command import relay
from deniable.protocol.uploads.id_set import IdSet
from deniable.protocol.wire import PACK_ID_BYTES
from deniable.relay import acceptance, fold, intake
from deniable.relay.keys import RelayKeys
from deniable.relay.service import group
from deniable.relay.service.delivery import PackDelivery
from deniable.relay.service.group import RelayGroup


class Strike:
    """Signals itself at a point of the n-th batch: `before`, `in`, `after` or `marker`."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self._point, self._left = order.get("point"), order.get("batches", 1)
        self._signal = signal.SIGKILL if order.get("kill", True) else signal.SIGSTOP

    def at(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), self._signal)


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


def shorten_lives(early_seconds: int) -> None:
    """Let windows take uploads only shortly before their start, so that relays of a short test rewind."""
    intake.EARLY_SECONDS = early_seconds
    intake.EARLY_MS = acceptance.EARLY_MS = fold.EARLY_MS = early_seconds * 1000


def main() -> None:
    file, order = sys.argv[1], json.loads(sys.argv[2])
    configure_logs()
    shorten_lives(order["early_seconds"])
    group.RELAYS = RELAYS._replace(session_seconds=order.get("session_seconds", RELAYS.session_seconds))
    armed(Strike(order).at, order.get("loses_packs", False))
    if order.get("assigned"):
        unfenced(order["partitions"])
    relay.main(["--config", file], prog_name="deniable relay")


if __name__ == "__main__":
    main()

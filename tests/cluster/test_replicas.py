"""Partitions that are gone are a failure, those that the next broker's failure would take are warnings."""

from typing import Any, cast

import pytest
from kafka import KafkaAdminClient

from deniable.cluster.finding import Finding
from deniable.cluster.topics.replicas import INTERNAL, replica_findings
from tests.support.messages import PinMessages

Partition = tuple[int, list[int], list[int]]  # leader, replicas, those in sync
NAMES = ("d-reports", "d-state")
SAFE: Partition = (1, [1, 2, 3], [3, 1, 2])
LONE: Partition = (1, [1], [1])
OFFLINE: Partition = (-1, [2], [2])
LAGGING: Partition = (1, [1, 2, 3], [1, 3])


def findings(brokers: int, *lists: list[Partition]) -> list[Finding]:
    """Of two topics and Kafka's two, in this order; those without partitions are not seen."""

    class Admin:
        def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
            assert names == [*NAMES, *INTERNAL]
            return [
                {
                    "name": name,
                    "error_code": 0 if partitions else 29,
                    "partitions": [
                        {
                            "partition_index": index,
                            "leader_id": leader,
                            "replica_nodes": all_,
                            "isr_nodes": isr,
                        }
                        for index, (leader, all_, isr) in enumerate(partitions)
                    ],
                }
                for name, partitions in zip(names, [*lists, *[[]] * (4 - len(lists))], strict=True)
            ]

    return replica_findings(cast(KafkaAdminClient, Admin()), NAMES, brokers)


@pytest.mark.parametrize(
    ("brokers", "partitions"),
    [(1, LONE), (2, (2, [2, 1], [2, 1])), (3, SAFE), (5, SAFE), (2, SAFE)],
)
def test_as_many_replicas_as_brokers_allow_are_safe(brokers: int, partitions: Partition) -> None:
    assert findings(brokers, *[[partitions] * 2] * 4) == []


def test_what_works_is_a_warning() -> None:
    for lists in ([[LONE], [SAFE]], [[SAFE, LAGGING], [SAFE]], [[SAFE], [SAFE], [LONE]]):
        (found,) = findings(3, *lists)
        assert found.is_warning, found
    (gone,) = findings(1, [LONE, OFFLINE], [LONE])
    assert not gone.is_warning


def test_hidden_topics_are_left_out() -> None:
    assert findings(3, [SAFE]) == findings(3) == []


def test_messages_of_replicas(pin_messages: PinMessages) -> None:
    def shown(brokers: int, *lists: list[Partition]) -> str:
        return "\n".join(map(str, findings(brokers, *lists)))

    pin_messages(
        {
            "one replica where three brokers are": lambda: shown(4, [LONE], [LONE]),
            "Kafka's own topics have two": lambda: shown(3, [SAFE], [SAFE], *[[(1, [1, 2], [1, 2])]] * 2),
            "a broker is down": lambda: shown(2, [LAGGING, SAFE, LAGGING], [LAGGING]),
            "a lone broker is down": lambda: shown(1, [LONE, OFFLINE], [OFFLINE]),
        }
    )

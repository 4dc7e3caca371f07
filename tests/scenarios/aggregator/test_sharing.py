"""How Faust assigns partitions to workers that join one by one, as docs/sizing.md describes."""

import pytest
from faust.assignor.client_assignment import CopartitionedAssignment
from faust.assignor.copartitioned_assignor import CopartitionedAssignor

STANDBYS = 1  # Faust's default, with its own assignor


@pytest.mark.parametrize(
    ("partitions", "owned"),
    [(4, [2, 2]), (4, [2, 2, 0]), (8, [3, 3, 2]), (4, [1, 1, 1, 1]), (8, [2, 2, 2, 2])],
)
def test_divisors_of_the_partitions_share_them_evenly(partitions: int, owned: list[int]) -> None:
    workers: dict[str, CopartitionedAssignment] = {}
    for name in range(len(owned)):
        workers[str(name)] = CopartitionedAssignment(topics={"reports"})
        CopartitionedAssignor({"reports"}, workers, partitions, STANDBYS).get_assignment()
    assert [len(worker.actives) for worker in workers.values()] == owned

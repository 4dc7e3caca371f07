"""Acts on a cluster of three brokers. Each is over once the cluster is whole and all is counted again."""

import time
from collections.abc import Callable

from deniable.deploy.broker.errors import BrokerError
from tests.chaos.faults.stage import Stage
from tests.chaos.faults.turns import READY_SECONDS, Turn
from tests.chaos.load.load import Load
from tests.chaos.processes.cluster.cluster import ChaosCluster
from tests.chaos.processes.positions import committed, log_ends
from tests.support.processes import wait_until

MOVED_SECONDS = 60.0
LATER_PACKS = 50  # a second, of a producer that begins during a fault
LATER_SECONDS = 2.0
LATER_MILLISECONDS = 300  # in which it collects packs for a request


def isolate_leader(seconds: float) -> Turn:
    """Return the turn that cuts a leader of `reports` off from brokers and controllers, not from clients.

    A producer that begins then writes to its successor. Workers go on with it, and see an old end of the log.
    """
    return _without_leader(ChaosCluster.isolate, seconds)


def isolate_leader_of_results(seconds: float) -> Turn:
    """Return the turn that does so with the node that leads all else: ledgers, counts, estimates, groups.

    Estimators read counts there, whose old end looks as if nothing were counted any more.
    """
    return _without_leader(ChaosCluster.isolate, seconds, of_reports=False)


def pause_leader(seconds: float) -> Turn:
    """Return the turn that suspends a leader of `reports`, which continues as if nothing had happened."""
    return _without_leader(lambda cluster, leader: cluster.nodes[leader].pause(), seconds)


def _without_leader(
    act: Callable[[ChaosCluster, int], None], seconds: float, *, of_reports: bool = True
) -> Turn:
    def turn(stage: Stage) -> None:
        cluster, (first, second, _) = stage.broker, arrange(stage)
        leader = first if of_reports else second
        act(cluster, leader)

        def replaced() -> bool:
            now = cluster.leaders(leader)
            return bool(now) and leader not in now.values()

        if not wait_until(replaced, MOVED_SECONDS):
            raise BrokerError("the leader was not replaced")
        others = cluster.servers_but(leader)
        stage.service.ask(others)
        send_meanwhile(stage, others, seconds)
        recover(stage)

    return turn


def slow_replica(seconds: float) -> Turn:
    """Return the turn that keeps a follower of `reports` from fetching: its high watermark stands still."""

    def turn(stage: Stage) -> None:
        leader, _, follower = arrange(stage)
        stage.broker.stop_fetching(follower, leader)
        send_meanwhile(stage, stage.broker.bootstrap_servers, seconds)
        recover(stage)

    return turn


def kill_coordinator(stage: Stage) -> None:
    """Kill the node that coordinates all groups and transactions, and leads every topic but `reports`."""
    _, coordinator, _ = arrange(stage)
    _kill(stage, [coordinator], stage.chance.uniform(1, 8))


def kill_controller(stage: Stage) -> None:
    """Kill the active controller."""
    _kill(stage, [stage.broker.controller()], stage.chance.uniform(1, 8))


def two_away(seconds: float) -> Turn:
    """Return the turn that kills two of three nodes: nothing can be written until one comes back."""
    return lambda stage: _kill(stage, stage.chance.sample(sorted(stage.broker.nodes), 2), seconds)


def move_leaders(stage: Stage) -> None:
    """Move the leaders of `reports` each, and those of all other topics."""
    nodes = sorted(stage.broker.nodes)
    topics, choose = stage.workers.configuration.topics, stage.chance.choice
    leaders = {(topics.reports, each): choose(nodes) for each in range(topics.partitions)}
    stage.broker.lead(leaders, choose(nodes))
    recover(stage)


def roll(stage: Stage) -> None:
    """Restart the nodes one by one, each once all replicas are in sync."""
    for node in stage.broker.nodes.values():
        node.end()
        recover(stage)


def fill_disk(seconds: float) -> Turn:
    """Return the turn that lets a leader of `reports` write no more, and starts it after a while."""

    def turn(stage: Stage) -> None:
        leader, _, _ = arrange(stage)
        stage.broker.nodes[leader].fill_disk()
        time.sleep(seconds)
        recover(stage)

    return turn


def send_meanwhile(stage: Stage, servers: str, seconds: float) -> None:
    """Let a producer after the other begin, each for two seconds, until the fault has lasted so long.

    A broker takes one request of a connection at a time: with a single producer, whose first request is not
    acknowledged, nothing more would be appended.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        seed = stage.chance.randrange(1 << 30)
        load = Load(stage.workers.configuration, LATER_PACKS, 0.0, seed, servers, LATER_MILLISECONDS)
        stage.senders.append(load)
        load.start()
        time.sleep(min(left, LATER_SECONDS))
        load.stopped.set()


def arrange(stage: Stage) -> tuple[int, int, int]:
    """Let one node lead half of `reports`, another all else; return both, and the third, by seed.

    So a fault of the first leaves to workers all that they need to believe its half idle.
    """
    first, second, third = (1 + (stage.seed + n) % 3 for n in range(3))
    topics = stage.workers.configuration.topics
    stage.broker.lead({(topics.reports, each): first for each in range(topics.partitions // 2)}, second)
    settle(stage)
    return first, second, third


def recover(stage: Stage) -> None:
    """End the fault, and note how long it takes until cluster and workers are as before; see Verdict."""
    healed = time.monotonic()
    settle(stage)
    stage.ready_seconds = max(stage.ready_seconds, time.monotonic() - healed)


def settle(stage: Stage) -> None:
    """Heal the cluster; wait until it is whole, and workers are ready and have counted what is there by then.

    Raises
    ------
    BrokerError if that takes too long.
    """
    workers, cluster = stage.workers, stage.broker
    cluster.resume()
    cluster.start()
    stage.service.ask(cluster.bootstrap_servers)
    ends = log_ends(workers.configuration)

    def settled() -> bool:
        stored = committed(workers.configuration)
        return all(stored[each] >= end for each, end in ends.items()) and all(
            worker.ready for worker in workers.alive
        )

    if not wait_until(settled, READY_SECONDS):
        raise BrokerError(f"workers are not ready: {ends}, stored {committed(workers.configuration)}")


def _kill(stage: Stage, numbers: list[int], seconds: float) -> None:
    for number in numbers:
        stage.broker.nodes[number].kill()
    time.sleep(seconds)
    recover(stage)

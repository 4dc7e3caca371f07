"""One of three brokers, each of them a controller, too; the others reach it through proxies alone."""

import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deniable.deploy.broker.broker import STOP_SECONDS, Broker
from deniable.deploy.broker.child_processes import stop
from deniable.deploy.broker.process import format_once, run_broker
from tests.support.processes import new_port

SESSION_SECONDS = 5  # after which controllers count a silent broker as dead
LAG_SECONDS = 20  # after which a replica that fetches nothing is out of sync; the high watermark waits for it
#: Later lines override those of the embedded broker.
SETTINGS = f"""
broker.heartbeat.interval.ms=500
broker.session.timeout.ms={SESSION_SECONDS * 1000}
replica.lag.time.max.ms={LAG_SECONDS * 1000}
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
auto.leader.rebalance.enable=false
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT
inter.broker.listener.name=BROKERS
"""
OWN_SETTINGS = """
node.id={number}
controller.quorum.bootstrap.servers=
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{at.clients},BROKERS://127.0.0.1:{at.brokers},CONTROLLER://127.0.0.1:{at.controllers}
advertised.listeners=PLAINTEXT://127.0.0.1:{at.clients},BROKERS://127.0.0.1:{at.brokers_proxy},CONTROLLER://127.0.0.1:{at.controllers_proxy}
"""


@dataclass(frozen=True)
class Ports:
    """The ports of a node on loopback: of its listeners, and of the proxies that the others use."""

    clients: int = field(default_factory=new_port)
    brokers: int = field(default_factory=new_port)
    controllers: int = field(default_factory=new_port)
    brokers_proxy: int = field(default_factory=new_port)
    controllers_proxy: int = field(default_factory=new_port)


class Node(Broker):
    """A broker of a cluster. `start` does not wait for it: alone it cannot answer.

    Parameters
    ----------
    number : its id, from 1 on.
    ports : of all nodes, by number - 1.
    cluster_id : the same for all.
    """

    def __init__(self, number: int, ports: Sequence[Ports], cluster_id: str) -> None:
        super().__init__(port=ports[number - 1].clients)
        self.number = number
        self._ports = ports
        self._format_arguments = [f"--cluster-id={cluster_id}"]

    def end(self) -> None:
        """Send SIGTERM, and wait until it has handed over and ended; the folder stays."""
        if self._child is not None:
            stop([self._child], STOP_SECONDS)

    def fill_disk(self) -> None:
        """Let it write to no file any more; it ends when it notices. Source: prlimit(2)."""
        if self._child is not None:
            _, hard = resource.prlimit(self._child.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(self._child.pid, resource.RLIMIT_FSIZE, (1, hard))
            self._child.wait(60)

    def _configure(self, folder: Path, port: int) -> None:
        super()._configure(folder, port)
        voters = ",".join(f"{n}@127.0.0.1:{at.controllers_proxy}" for n, at in enumerate(self._ports, 1))
        own = OWN_SETTINGS.format(number=self.number, voters=voters, at=self._ports[self.number - 1])
        with (folder / "server.properties").open("a") as settings:
            settings.write(SETTINGS + own)

    def _come_up(self, folder: Path, java: str, libs: Path) -> None:
        self._configure(folder, self._port)
        format_once(folder, java, libs, self._format_arguments)
        self._child = run_broker(folder, java, libs, own_session=True)

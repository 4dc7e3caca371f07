"""A cluster of several embedded brokers on loopback; the first is also the only controller."""

import base64
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.brokers.broker_with import BrokerWith

CONTROLLER = "controller.quorum.bootstrap.servers"
OF_CLUSTER = ("offsets.topic.replication.factor=3", "transaction.state.log.replication.factor=3")


class _Follower(BrokerWith):
    """A broker that joins the cluster of another one."""

    def __init__(self, number: int, first: BrokerWith, *lines: str) -> None:
        assert first.folder is not None
        self._cluster_id = _values(first.folder / "kafka" / "meta.properties")["cluster.id"]
        address = _values(first.folder / "server.properties")[CONTROLLER]
        super().__init__("process.roles=broker", f"node.id={number}", f"{CONTROLLER}={address}", *lines)
        self._number = number

    def _configure(self, folder: Path, port: int) -> None:
        self._lines = (*self._lines, *(f"{key}=PLAINTEXT://127.0.0.1:{port}" for key in _LISTENERS))
        super()._configure(folder, port)
        (folder / "kafka").mkdir(exist_ok=True)
        known = {"version": "1", "cluster.id": self._cluster_id, "node.id": str(self._number)}
        known["directory.id"] = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        text = "".join(f"{key}={value}\n" for key, value in known.items())
        (folder / "kafka" / "meta.properties").write_text(
            text
        )  # so nobody formats it as a cluster of its own


_LISTENERS = ("listeners", "advertised.listeners")


def _values(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)


@contextmanager
def three_brokers(*lines: str) -> Iterator[list[BrokerWith]]:
    """Start three brokers whose settings end with these lines; the first must run while others start."""
    with ExitStack() as stack:
        first = stack.enter_context(BrokerWith(*OF_CLUSTER, *lines))
        others = [stack.enter_context(_Follower(number, first, *OF_CLUSTER, *lines)) for number in (2, 3)]
        yield [first, *others]


def addresses(brokers: list[BrokerWith]) -> str:
    """Return the bootstrap servers of all."""
    return ",".join(each.bootstrap_servers for each in brokers)

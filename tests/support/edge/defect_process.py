"""The real `deniable edge` with a defect: one of its tasks meets an error that nobody foresaw.

python -m tests.support.edge.defect_process PART ARGUMENTS...
"""

import sys
from collections.abc import Callable

from deniable.edge import server
from deniable.edge.sending.kafka_session import KafkaSession
from deniable.edge.sending.lanes import Lane
from deniable.edge.tls import TlsFiles
from deniable.edge.web.connection import HttpConnection

PAYLOAD = "Mallory was here"


def fail(*_: object) -> None:
    raise KeyError(PAYLOAD)


PARTS: dict[str, tuple[type, str, Callable[..., None]]] = {
    "keep": (KafkaSession, "open", fail),
    "tick": (Lane, "overdue", fail),
    "watch": (HttpConnection, "check", fail),
    "files": (TlsFiles, "refresh", fail),
}


def main() -> None:
    from deniable.deploy.cli.main import main as deniable

    owner, name, defect = PARTS[sys.argv[1]]
    setattr(owner, name, defect)
    server.FILES_SECONDS = 0.1
    sys.argv = ["deniable", "edge", *sys.argv[2:]]
    deniable()


if __name__ == "__main__":
    main()

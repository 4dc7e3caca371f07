"""A real edge for tests, which kills itself between Kafka's acknowledgement and the answers.

python -m tests.support.edge.edge_process JSON

The order has a collection file, a port, and the number of the acknowledged frame at which to die.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from deniable.edge.sending.upload_writer import UploadWriter


def before_answers(at: Callable[[str], None]) -> None:
    """Call `at` when a frame is acknowledged, before any of its uploads is answered."""
    finish = UploadWriter._finish

    def finish_later(self: UploadWriter, lane: Any, uploads: Any, error: BaseException | None) -> None:
        if error is None:
            at("before-answers")
        finish(self, lane, uploads, error)

    UploadWriter._finish = finish_later


def main() -> None:
    from deniable.deploy.cli.main import main as deniable

    order = json.loads(sys.argv[1])
    left = iter(range(order["frames"] - 1))
    before_answers(lambda _: None if next(left, None) is not None else os.kill(os.getpid(), signal.SIGKILL))
    address = f"127.0.0.1:{order['port']}"
    sys.argv = ["deniable", "edge", "--config", order["file"], "--listen", address]
    deniable()


if __name__ == "__main__":
    main()

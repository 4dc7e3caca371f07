"""A real edge for tests, which kills itself between Kafka's acknowledgement and the answers.

python -m tests.support.edge.edge_process JSON

The order has a collection file, an address, and the number of the acknowledged frame at which to die.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import uvloop

from deploy.config.file import load
from deploy.services.edge.command import KEY_FILE, edge_settings
from edge.sending.lanes import Lane, WaitingUpload
from edge.sending.upload_writer import UploadWriter
from edge.server import Edge
from edge.signing_key import open_signing_key


class MortalWriter(UploadWriter):
    """Kills the process when a frame is acknowledged, before any of its uploads is answered."""

    frames_left = 0

    def _finish(self, lane: Lane, uploads: list[WaitingUpload], error: BaseException | None) -> None:
        if error is None:
            self.frames_left -= 1
            if self.frames_left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        super()._finish(lane, uploads, error)


class MortalEdge(Edge):
    """An edge with such a writer."""

    def __init__(self, settings, frames):
        super().__init__(settings)
        self._frames = frames

    def _new_writer(self):
        settings = self.settings
        MortalWriter.frames_left = self._frames
        return MortalWriter(self._open_session, settings.partitions, self.counters)


async def serve(order):
    loaded = load(Path(order["file"]), environment={})
    key = open_signing_key(loaded.path.parent / KEY_FILE, None)
    edge = MortalEdge(edge_settings(loaded, loaded.edge, key), order["frames"])
    await edge.open("127.0.0.1", order["port"])
    await asyncio.Event().wait()


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(json.loads(sys.argv[1])))


if __name__ == "__main__":
    main()

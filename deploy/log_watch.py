"""Whether `reports` is still the log that the ledgers count: it may be made again under a running worker,
or be given more partitions.

The clients that count know topics by name only, and offsets of the new log may well go on where the old ones
ended.
"""

import threading
import time
from contextlib import suppress

from aggregator.deployment import Deployment
from aggregator.opening import log_was_made_again, partitions_were_added
from aggregator.rows import Genesis
from deploy import topic_setup
from deploy.addresses import UnreachableError
from deploy.topic_setup import TopicError

WATCH_SECONDS = 15.0


class LogWatch(threading.Thread):
    """Asks for the log's identity, in a thread that never holds up the end of the process.

    Parameters
    ----------
    deployment : with the identity that the log had when the worker began.
    """

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(daemon=True)
        self.deployment = deployment
        self._found: Genesis | None = None

    def check(self) -> None:
        """Raise LedgerRefused once the topic is known to be another one, or to have got more partitions."""
        log = self._found
        if log is not None and log.topic_id != self.deployment.log.topic_id:
            raise log_was_made_again(self.deployment)
        if log is not None:
            raise partitions_were_added(self.deployment, log.partitions)

    def run(self) -> None:
        """Ask until another log is found twice in a row; without an answer, or a topic, ask again.

        Twice, since a broker that has just come back may tell of what was there before.
        """
        before = self.deployment.log
        while self._found is None:
            time.sleep(WATCH_SECONDS)
            with suppress(TopicError, UnreachableError, OSError):
                log = topic_setup.identity(self.deployment.bootstrap_servers, self.deployment.topics)
                if log == before and log != self.deployment.log:
                    self._found = log
                before = log

"""Whether `reports` is still the log that the ledgers count, and the topics are still set as they must be.

`reports` may be made again under a running worker, or be given more partitions. The clients that count know
topics by name only, and offsets of the new log may well go on where the old ones ended. Nor do they notice
that a topic keeps other times, or no longer all its rows.
"""

import threading
import time
from contextlib import suppress

from aggregator.deployment import Deployment
from aggregator.ledger.row_values import Genesis
from aggregator.partition.ledger_checks import log_was_recreated, partitions_were_added
from deploy.cluster.connection.probe import UnreachableError
from deploy.cluster.finding import Finding
from deploy.cluster.topics import setup as topic_setup
from deploy.cluster.topics.setup import TopicSetupError

WATCH_SECONDS = 15.0


class LogWatch(threading.Thread):
    """Asks for both in a thread that never holds up the end of the process.

    Parameters
    ----------
    deployment : with the identity that the log had when the worker began.
    """

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(daemon=True)
        self.deployment = deployment
        self._found: tuple[Genesis, list[Finding]] | None = None

    def check(self) -> None:
        """Raise what is known to be wrong.

        Raises
        ------
        LedgerRefusedError when the topic is another one, or has more partitions; TopicSetupError when
        settings have changed.
        """
        if self._found is None:
            return
        log, findings = self._found
        if log.topic_id != self.deployment.log.topic_id:
            raise log_was_recreated(self.deployment.topics)
        if log.partitions != self.deployment.log.partitions:
            raise partitions_were_added(
                self.deployment.topics, log.partitions, self.deployment.log.partitions
            )
        topic_setup.refuse(findings)

    def run(self) -> None:
        """Ask until the same is wrong twice in a row; without an answer, or a topic, ask again.

        Twice, since a broker that has just come back may tell of what was there before.
        """
        right: tuple[Genesis, list[Finding]] = (self.deployment.log, [])
        before = right
        while self._found is None:
            time.sleep(WATCH_SECONDS)
            with suppress(TopicSetupError, UnreachableError, OSError):
                found = topic_setup.standing(self.deployment.cluster, self.deployment.topics)
                if found == before and found != right:
                    self._found = found
                before = found

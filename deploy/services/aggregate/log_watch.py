"""Watch that `reports` is still the log that the ledgers count, and that the topics' settings still fit.

`reports` may be recreated under a running worker, or get more partitions. The counting clients know topics by
name only, and offsets of the new log may continue where the old ones ended. Nor do they notice that a topic
changes its kind of timestamps or its compaction.
"""

import threading
import time
from contextlib import suppress

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger.row_values import Genesis
from deniable.aggregator.partition.ledger_checks import log_was_recreated, partitions_were_added
from deniable.cluster.connection.probe import UnreachableError
from deniable.cluster.finding import Finding
from deniable.cluster.topics import checks as topic_checks
from deniable.cluster.topics.checks import TopicSetupError
from deniable.deploy.cluster.topics import setup as topic_setup

WATCH_SECONDS = 15.0


class LogWatch(threading.Thread):
    """Asks the broker in a daemon thread, which never delays the end of the process.

    Parameters
    ----------
    deployment : with the log's identity at the start of the worker.
    watch_seconds : between two questions, >= 0.
    """

    def __init__(self, deployment: Deployment, watch_seconds: float = WATCH_SECONDS) -> None:
        super().__init__(daemon=True)
        self.deployment = deployment
        self.watch_seconds = watch_seconds
        self._found: tuple[Genesis, list[Finding]] | None = None

    def check(self) -> None:
        """Raise what the watch has found.

        Raises
        ------
        LedgerRefusedError if the topic was recreated or has more partitions; TopicSetupError if settings have
        changed.
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
        topic_checks.refuse(findings)

    def run(self) -> None:
        """Ask until the same finding comes twice in a row; ask again without an answer or a topic.

        Twice, because a broker that has just restarted may answer with outdated metadata.
        """
        right: tuple[Genesis, list[Finding]] = (self.deployment.log, [])
        before = right
        while self._found is None:
            time.sleep(self.watch_seconds)
            with suppress(TopicSetupError, UnreachableError, OSError):
                found = topic_setup.present_log(self.deployment.cluster, self.deployment.topics)
                if found == before and found != right:
                    self._found = found
                before = found

"""An outage of Kafka as one process sees it: one log line at its begin, one at its end, with its cause.

Rule 1: parts of a process, such as partitions, fail and recover each on its own, with errors that differ. The
outage lasts until none of them is in trouble.
Rule 2: a client's error rarely says what is wrong ("timed out"), so the brokers are asked, once an outage.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog
from aiokafka import errors
from aiokafka.admin import AIOKafkaAdminClient

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.causes import cause_of
from deniable.cluster.connection.handshakes import Address
from deniable.cluster.connection.probe import Tried, address_of, require_spare_files, try_broker
from deniable.cluster.credential_files import SecurityError
from deniable.estimators.errors import DeniableError

ASK_SECONDS = 3.0
ANSWER_SECONDS = 5.0  # after which a consumer's request counts as not answered
PAUSE_SECONDS = 2.0
SAFE_IN_SYNC = 2
TOO_FEW = "too few replicas are in sync"
NOT_ENOUGH = (errors.NotEnoughReplicasError, errors.NotEnoughReplicasAfterAppendError)
NO_OUTAGE = (errors.UnknownTopicOrPartitionError, errors.UnsupportedCodecError)

T = TypeVar("T")

_log = structlog.get_logger(__name__)


def is_outage(error: BaseException) -> bool:
    """Whether an error ends with an outage of a broker, the network or replicas: no topic or right lacks."""
    error = _unwrapped(error)
    if isinstance(error, NO_OUTAGE):
        return False
    if isinstance(error, errors.KafkaError):
        return bool(error.retriable) or isinstance(error, errors.KafkaTimeoutError)
    return isinstance(error, TimeoutError | OSError)


def _unwrapped(error: BaseException) -> BaseException:
    """Return the cause of aiokafka's "Unexpected error during batch delivery", which says nothing."""
    is_bare = type(error) is errors.KafkaError and error.__cause__ is not None
    return error.__cause__ or error if is_bare else error


def described(error: BaseException) -> str:
    """Return what an error of Kafka's client says, for people; its type if unknown."""
    match error := _unwrapped(error):
        case errors.NotEnoughReplicasError() | errors.NotEnoughReplicasAfterAppendError():
            return TOO_FEW
        case errors.LeaderNotAvailableError():
            return "a partition has no leader"
        case errors.RequestTimedOutError() | errors.KafkaTimeoutError() | TimeoutError():
            return "no answer in time"
        case errors.KafkaConnectionError() | errors.NodeNotReadyError():
            return "no broker answers"
        case (
            errors.IllegalStateError()
            | errors.CommitFailedError()
            | errors.RebalanceInProgressError()
            | errors.IllegalGenerationError()
            | errors.UnknownMemberIdError()
        ):
            return "the group's partitions are being assigned anew"
        case OSError():
            return cause_of(error, ASK_SECONDS, None).what
    return type(error).__name__


class Outage:
    """Notes which parts of a process fail for Kafka; `cause` is empty while none does. Thread-safe.

    Parameters
    ----------
    cluster : which Kafka.
    meanwhile : what happens until the end, for the log.
    topics : whose replicas matter.
    """

    def __init__(self, cluster: Cluster, meanwhile: str, topics: Sequence[str] = ()) -> None:
        self._cluster, self._meanwhile, self._topics = cluster, meanwhile, topics
        self._troubled: set[Hashable] = set()
        self._lock = threading.Lock()
        self._began = 0.0
        self._is_logged = True
        self.cause = ""

    def __str__(self) -> str:
        """The reason for `/readyz`."""
        return f"Kafka cannot be used: {self.cause}"

    def failed(self, part: Hashable, error: BaseException) -> None:
        """Note an error that is worth a retry."""
        with self._lock:
            self._troubled.add(part)
            if self.cause:
                return
            self.cause, self._began, self._is_logged = described(error), time.monotonic(), False
        # A daemon: a process that ends does not wait for brokers. It has a loop of its own.
        threading.Thread(target=self._explain, args=(error, self._began), daemon=True).start()

    def answered(self, part: Hashable) -> None:
        """Note that a part works."""
        self._troubled.discard(part)
        if not self.cause:
            return
        with self._lock:
            if self.cause and not self._troubled:
                self._log_begin()
                _log.info("Kafka can be used again", after_seconds=round(time.monotonic() - self._began))
                self.cause = ""

    def forget(self, part: Hashable) -> None:
        """Note that a part is no longer ours, which ends no outage."""
        self._troubled.discard(part)

    def _explain(self, error: BaseException, began: float) -> None:
        try:
            require_spare_files()
            cause = asyncio.run(why_unavailable(self._cluster, self._topics, error))
        except OSError as own:
            cause = described(own)
        with self._lock:
            if self.cause and self._began == began:
                self.cause = cause
                self._log_begin()

    def _log_begin(self) -> None:
        if not self._is_logged:
            _log.warning(f"Kafka cannot be used; {self._meanwhile} until it can", cause=self.cause)
        self._is_logged = True


@asynccontextmanager
async def noted(outage: Outage | None, ask: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Ask Kafka every 2 s meanwhile, and note whether it answers: a consumer that waits does not say.

    Parameters
    ----------
    outage : to note it in; None: nothing is asked.
    ask : sends a request over the consumer's connections; it may raise KafkaError.
    """
    if outage is None:
        yield
        return
    asking = asyncio.create_task(_note(outage, ask))
    try:
        yield
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _note(outage: Outage, ask: Callable[[], Awaitable[object]]) -> None:
    while True:
        await answers(outage, ask)
        await asyncio.sleep(PAUSE_SECONDS)


async def answers(outage: Outage, ask: Callable[[], Awaitable[T]]) -> T | None:
    """Return the answer to a request; None, and an outage noted, if none comes."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await ask()
    except (errors.KafkaError, TimeoutError) as error:
        outage.failed("answers", error)
        return None
    outage.answered("answers")
    return answer


async def why_unavailable(
    cluster: Cluster, topics: Sequence[str] = (), error: BaseException | None = None
) -> str:
    """Ask all brokers; return which do not answer and why, or which partitions lack leader or replicas.

    An unusable file of `kafka.security` is named. Without a finding, what the error says; empty without one.
    """
    seconds = ASK_SECONDS
    try:
        tried = await _tried(cluster, cluster.addresses(), seconds)
        known = {each.address for each in tried}
        others = {each for one in tried for each in one.brokers if address_of(*each) not in known}
        tried += await _tried(cluster, sorted(others), seconds)
        if away := [f"{each.address}: {each.cause.what}" for each in tried if each.cause]:
            some = f"{len(away)} of {len(tried)} brokers cannot be used"
            return f"{'no broker answers' if len(away) == len(tried) else some} ({'; '.join(away)})"
        async with asyncio.timeout(seconds):
            if topics and (lacking := await _lacking(cluster, topics, error)):
                return lacking
    except SecurityError as unusable:
        return str(unusable)
    except (errors.KafkaError, OSError, DeniableError):
        pass
    return "" if error is None else described(error)


async def number_of_brokers(cluster: Cluster) -> int:
    """Return how many brokers those that answer name; at least how many addresses we have."""
    tried = await _tried(cluster, cluster.addresses(), ASK_SECONDS)
    return max(len(tried), *(len(each.brokers) for each in tried))


async def _tried(cluster: Cluster, addresses: Sequence[Address], seconds: float) -> list[Tried]:
    return await asyncio.gather(*(try_broker(cluster, *each, seconds) for each in addresses))


async def _lacking(cluster: Cluster, topics: Sequence[str], error: BaseException | None) -> str:
    admin = AIOKafkaAdminClient(**cluster.client_settings())
    try:
        await admin.start()
        described_topics = await admin.describe_topics()  # all: who asks for one by name creates it
    finally:
        await admin.close()
    offline, lagging = [], []
    for topic in described_topics:
        for each in topic["partitions"] if topic["topic"] in topics else ():
            in_sync, replicas = len(each["isr"]), len(each["replicas"])
            name = f"{topic['topic']} {each['partition']}"
            if each["leader"] < 0:
                offline.append(name)
            elif in_sync < (replicas if isinstance(error, NOT_ENOUGH) else min(SAFE_IN_SYNC, replicas)):
                lagging.append(f"{name} ({in_sync} of {replicas})")
    if offline:
        return f"no leader of {', '.join(offline)}"
    return f"{TOO_FEW}: {', '.join(lagging)}" if lagging else ""

"""Run the steps in order, each with a time limit; skip steps that depend on a failed one."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from deniable.cluster.connection.causes import cause_of
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import with_article
from deniable.cluster.permissions.roles import Role
from deniable.cluster.reading.publication_reader import UnreadableError
from deniable.deploy.cluster.doctor.brokers import STARTING, outage_finding
from deniable.deploy.cluster.doctor.capabilities.needs import capabilities
from deniable.deploy.cluster.doctor.capabilities.transactions import transactions
from deniable.deploy.cluster.doctor.case import Capability, Case, NotUsedError, StepAnswer
from deniable.deploy.cluster.doctor.clock_skew import clock_skew
from deniable.deploy.cluster.doctor.connection import advertised, authentication, connection, tls
from deniable.deploy.cluster.doctor.edge import edge, edge_clock_skew, edge_parameters, edge_ready
from deniable.deploy.cluster.doctor.topics import authorization, replicas, state, topics
from deniable.deploy.cluster.doctor.uploads import origins, uploads
from deniable.deploy.cluster.topics.published import compared
from deniable.producers.budget.postgres import tables
from deniable.producers.budget.postgres.connection import AwayError
from deniable.producers.opening.from_file import producer_config
from deniable.producers.storage.store import StoreError
from deniable.protocol.secrets.secret import SecretError, secret_of
from deniable.protocol.words import number_of

TOTAL_SECONDS = 8.0  # of the 10 that a run may take, start of Python included
LEAST_SECONDS = 0.2  # with less time left a step is not begun
GIVE_UP_SECONDS = 0.3  # for a step to report its own timeout

AWAY_REMEDY = "see that it runs, and that host, port, user and password (PGPASSWORD) are right"

WORKER_REMEDY = (
    "Use the file of the running workers, or, if this one is newer, raise its revision and restart them"
)


def parameters(case: Case, _seconds: float) -> StepAnswer:
    """Compare each collection; one with other parameters is a finding."""
    if case.role is Role.READER:
        raise NotUsedError(f"a {case.role} sends and counts nothing")
    if case.role in (Role.EDGE, Role.RELAY):
        raise NotUsedError(f"{with_article(case.role)} may not read what workers publish")
    configuration = case.configuration
    try:
        found, published = compared(case.cluster, configuration.topics, configuration.collections)
    except UnreadableError as error:
        raise NotUsedError(f"unknown: {error}") from None
    if not published:
        raise NotUsedError("unknown: no worker has published what it counts yet")
    if not found:
        counted = number_of(len(published), "collection")
        return StepAnswer([], f"the workers count {counted}, and this file agrees with them")
    is_worker = case.role is Role.AGGREGATOR
    return StepAnswer([Finding(each.what, WORKER_REMEDY if is_worker else each.remedy) for each in found])


def budget_store(case: Case, _seconds: float) -> StepAnswer:
    """Connect, and check secret, tables and permissions; writes nothing."""
    if case.role is not Role.PRODUCER:
        raise NotUsedError("only producers charge clients")
    settings = producer_config(case.configuration, connects=False)
    if settings.budget_store is None:
        raise NotUsedError(f"not configured: budgets are in {settings.data_dir}")
    try:
        secret = secret_of(settings.data_dir, settings.secret_file)
        return StepAnswer([], tables.examine(settings.budget_store, secret))
    except AwayError as error:
        return StepAnswer([Finding(str(error), AWAY_REMEDY)])
    except (SecretError, StoreError) as error:  # the message says the remedy
        return StepAnswer([Finding(str(error), "")])


class Step(NamedTuple):
    """One step.

    Parameters
    ----------
    name : as printed.
    examine : takes the case and the seconds it has; if it takes longer, it is abandoned.
    seconds : its time limit.
    needs : the step that must not have failed; empty for none.
    """

    name: str
    examine: Callable[[Case, float], StepAnswer]
    seconds: float
    needs: str


STEPS = (
    Step("connection", connection, 2.0, ""),
    Step("TLS", tls, 2.0, "connection"),
    Step("authentication", authentication, 5.5, "TLS"),  # identity providers may take 5 s
    Step("brokers", advertised, 2.0, "authentication"),
    # A new cluster creates 50 partitions when it is first asked about transactions, here or there.
    Step("authorization", authorization, 5.0, "authentication"),
    Step("topics", topics, 2.5, "authorization"),
    Step("replicas", replicas, 2.5, "topics"),
    Step("state", state, 2.5, "topics"),
    Step("parameters", parameters, 2.5, "topics"),
    Step("transactions", transactions, 5.0, "topics"),
    # Before topics exist, too: then only by what brokers offer and would accept.
    Step("capabilities", capabilities, 2.5, "authentication"),
    Step("clock skew", clock_skew, 2.0, "topics"),
    Step("budget store", budget_store, 2.5, ""),
)
#: After STEPS, of edges and relays.
UPLOAD_STEPS = (
    Step("uploads", uploads, 2.5, "topics"),
    Step("origins", origins, 1.0, ""),
)
#: Of a producer that delivers to an edge, instead of STEPS.
EDGE_STEPS = (
    Step("edge", edge, 2.5, ""),
    Step("ready", edge_ready, 1.0, "edge"),
    Step("parameters", edge_parameters, 2.5, "edge"),
    Step("clock skew", edge_clock_skew, 1.0, "edge"),
    Step("budget store", budget_store, 2.5, ""),
)


@dataclass(frozen=True)
class Result:
    """A step's result.

    `status`: ok, warning, failed or skipped; `note` if there are no findings, or with the `capabilities` of
    the step of this name.
    """

    step: str
    status: str
    findings: tuple[Finding, ...]
    note: str
    seconds: float
    capabilities: tuple[Capability, ...] = ()


def examine(case: Case, total_seconds: float = TOTAL_SECONDS) -> Iterator[Result]:
    """Run the steps one by one and yield each result; not within an event loop."""
    deadline = time.monotonic() + total_seconds
    failed: dict[str, str] = {}
    for step in _steps(case):
        if step.needs in failed:
            failed[step.name] = failed[step.needs]
            yield Result(step.name, "skipped", (), f"{failed[step.needs]} failed", 0.0)
            continue
        result = _take(step, case, deadline - time.monotonic())
        if result.status == "failed":
            failed[step.name] = step.name
        yield result


def _steps(case: Case) -> tuple[Step, ...]:
    if case.delivers_to_edge:
        return EDGE_STEPS
    return STEPS + UPLOAD_STEPS if case.role in (Role.EDGE, Role.RELAY) else STEPS


def _take(step: Step, case: Case, left_seconds: float) -> Result:
    seconds = min(step.seconds, left_seconds - GIVE_UP_SECONDS)
    if seconds < LEAST_SECONDS:
        slow = Finding("no time was left for it", "fix the slow step first")
        return Result(step.name, "failed", (slow,), "", 0.0)
    began = time.monotonic()
    answer, status = _within(step, case, seconds)
    if status == "ok" and answer.findings:
        status = "warning" if all(each.is_warning for each in answer.findings) else "failed"
    note = answer.note if answer.capabilities or not answer.findings else ""
    findings, seconds = tuple(answer.findings), time.monotonic() - began
    return Result(step.name, status, findings, note, seconds, answer.capabilities)


def _within(step: Step, case: Case, seconds: float) -> tuple[StepAnswer, str]:
    """Examine in a thread that can be abandoned: Kafka's clients may wait for half a minute."""
    came: list[tuple[StepAnswer, str]] = []

    def run() -> None:
        try:
            came.append((step.examine(case, seconds), "ok"))
        except NotUsedError as reason:
            came.append((StepAnswer([], str(reason)), "skipped"))
        except Exception as error:  # noqa: BLE001 - clients raise anything; each becomes a cause
            security = None if case.delivers_to_edge else case.configuration.cluster.security
            cause = cause_of(error, seconds, security)
            finding = outage_finding(error, case.away) or Finding(cause.what, cause.remedy)
            came.append((StepAnswer([finding]), "ok"))

    thread = threading.Thread(target=run, daemon=True, name=f"doctor-{step.name}")
    thread.start()
    thread.join(seconds + GIVE_UP_SECONDS)
    if came:
        return came[0]
    finding = outage_finding(TimeoutError(), case.away) or Finding(
        f"no answer within {seconds:.1f} s",
        STARTING,
    )
    return StepAnswer([finding]), "ok"

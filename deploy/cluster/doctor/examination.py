"""The steps in their order, each within its time; what rests on a step that failed is skipped."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from deploy.cluster.connection.causes import cause_of
from deploy.cluster.doctor.case import Case, NotUsedError, StepAnswer
from deploy.cluster.doctor.clock_skew import clock_skew
from deploy.cluster.doctor.connection import advertised, authentication, connection, tls
from deploy.cluster.doctor.topics import authorization, state, topics
from deploy.cluster.doctor.transactions import transactions
from deploy.cluster.finding import Finding

TOTAL_SECONDS = 8.0  # of the 10 that a run may take with the start of Python
LEAST_SECONDS = 0.2  # below which a step is not begun
GIVE_UP_SECONDS = 0.3  # for a step to say itself that it had no answer


class Step(NamedTuple):
    """One step.

    Parameters
    ----------
    name : as it is printed.
    examine : of the case, within so many seconds; it may take longer, and is then left alone.
    seconds : its share.
    needs : the step that must not have failed; empty for none.
    """

    name: str
    examine: Callable[[Case, float], StepAnswer]
    seconds: float
    needs: str


STEPS = (
    Step("connection", connection, 2.0, ""),
    Step("TLS", tls, 2.0, "connection"),
    Step("authentication", authentication, 2.0, "TLS"),
    Step("brokers", advertised, 2.0, "authentication"),
    Step("authorization", authorization, 2.5, "authentication"),
    Step("topics", topics, 2.5, "authorization"),
    Step("state", state, 2.5, "topics"),
    Step("transactions", transactions, 2.5, "topics"),
    Step("clock skew", clock_skew, 2.0, "topics"),
)


@dataclass(frozen=True)
class Result:
    """What came of a step. `status`: ok, warning, failed or skipped; `note` where nothing is found."""

    step: str
    status: str
    findings: tuple[Finding, ...]
    note: str
    seconds: float


def examine(case: Case, total_seconds: float = TOTAL_SECONDS) -> Iterator[Result]:
    """Take the steps one after the other, each result as soon as it is there; not in an event loop."""
    deadline = time.monotonic() + total_seconds
    failed: dict[str, str] = {}
    for step in STEPS:
        if step.needs in failed:
            failed[step.name] = failed[step.needs]
            yield Result(step.name, "skipped", (), f"{failed[step.needs]} failed", 0.0)
            continue
        result = _take(step, case, deadline - time.monotonic())
        if result.status == "failed":
            failed[step.name] = step.name
        yield result


def _take(step: Step, case: Case, left_seconds: float) -> Result:
    seconds = min(step.seconds, left_seconds - GIVE_UP_SECONDS)
    if seconds < LEAST_SECONDS:
        slow = Finding("no time was left for it", "mend what is slow")
        return Result(step.name, "failed", (slow,), "", 0.0)
    began = time.monotonic()
    answer, status = _within(step, case, seconds)
    if status == "ok" and answer.findings:
        status = "warning" if all(each.is_warning for each in answer.findings) else "failed"
    note = "" if answer.findings else answer.note
    return Result(step.name, status, tuple(answer.findings), note, time.monotonic() - began)


def _within(step: Step, case: Case, seconds: float) -> tuple[StepAnswer, str]:
    """Examine in a thread that can be left alone: Kafka's clients may wait for half a minute."""
    came: list[tuple[StepAnswer, str]] = []

    def run() -> None:
        try:
            came.append((step.examine(case, seconds), "ok"))
        except NotUsedError as said:
            came.append((StepAnswer([], str(said)), "skipped"))
        except Exception as error:  # noqa: BLE001 - clients raise what they like; each becomes a cause
            cause = cause_of(error, seconds, case.configuration.cluster.security)
            came.append((StepAnswer([Finding(cause.what, cause.remedy)]), "ok"))

    thread = threading.Thread(target=run, daemon=True, name=f"doctor-{step.name}")
    thread.start()
    thread.join(seconds + GIVE_UP_SECONDS)
    if came:
        return came[0]
    finding = Finding(
        f"no answer within {seconds:.1f} s", "was the broker stopped, is it overloaded or only just started?"
    )
    return StepAnswer([finding]), "ok"

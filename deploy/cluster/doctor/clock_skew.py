"""Compare this machine's clock with Kafka's, whose append times decide what is early and late.

The aggregator's role compares with the records that it has just written and aborted, one at each broker that
leads a partition of `state`, and so compares these brokers, too. Other roles write
nothing: they ask for the newest append time of a topic, which Kafka's clock has passed. So they notice that
this clock is behind, but that it is ahead only while records arrive.
"""

from collections.abc import Sequence

from kafka import KafkaAdminClient, OffsetSpec, TopicPartition

from deniable.cluster.finding import Finding
from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.doctor.case import Append, Case, NotUsedError, StepAnswer

LIMIT_SECONDS = 60.0
BROKER_LIMIT_SECONDS = 1.0  # NTP keeps clocks closer than a tenth of it


def clock_skew(case: Case, _seconds: float) -> StepAnswer:
    """Compare the clocks; more than 60 s is a finding, more than 1 s between brokers a warning."""
    if case.appends:
        answer = _judge(sum(case.appends[0].ahead) / 2, "")
        return answer._replace(findings=answer.findings + _between_brokers(case.appends))
    newest = _newest_append(case)
    behind = None if newest is None else newest - case.clock()
    if behind is None:
        raise NotUsedError("unknown: there is no record yet")
    if behind <= 0:
        age = f"the newest record is {-behind:.0f} s old by this clock"
        return StepAnswer([], f"not behind Kafka's; unknown whether ahead: {age}")
    if behind <= LIMIT_SECONDS:
        return StepAnswer([], f"behind Kafka's by {behind:.1f} s or more, which is no harm up to 60 s")
    return _judge(behind, "or more")


def _judge(behind_seconds: float, more: str) -> StepAnswer:
    """Judge by how far Kafka's clock is ahead of ours."""
    if abs(behind_seconds) <= LIMIT_SECONDS:
        return StepAnswer([], f"within {max(abs(behind_seconds), 0.1):.1f} s of Kafka's")
    which = "behind" if behind_seconds > 0 else "ahead of"
    skew = " ".join(part for part in (f"{abs(behind_seconds):.0f} s", more) if part)
    remedy = "set both by NTP: reports that seem late, or more than 300 s early, are not counted"
    return StepAnswer([Finding(f"this clock is {skew} {which} Kafka's", remedy)])


def _between_brokers(appends: Sequence[Append]) -> list[Finding]:
    """Find whether brokers' clocks differ, whenever they appended between question and answer."""
    first = max(appends, key=lambda each: each.ahead[0])
    last = min(appends, key=lambda each: each.ahead[1])
    seconds = first.ahead[0] - last.ahead[1]
    if seconds <= BROKER_LIMIT_SECONDS:
        return []
    what = (
        f"the clock of broker {first.broker} is {seconds:.1f} s or more ahead of that of broker {last.broker}"
    )
    remedy = "set both by NTP: when a partition moves between them, reports in time may seem late"
    return [Finding(what, remedy, is_warning=True)]


def _newest_append(case: Case) -> float | None:
    """Return the newest append time, unix seconds; None if topics are empty. Needs only Describe."""
    names = case.configuration.topics
    of_role = {Role.READER: names.estimates, Role.EDGE: names.uploads, Role.RELAY: names.uploads}
    topic = of_role.get(case.role, names.reports)
    admin = KafkaAdminClient(**case.cluster.client_settings())
    try:
        number = len(admin.describe_topics([topic])[0]["partitions"])
        asked = {TopicPartition(topic, each): OffsetSpec.MAX_TIMESTAMP for each in range(number)}
        found = [each.timestamp for each in admin.list_partition_offsets(asked).values()]
    finally:
        admin.close()
    return max(found) / 1000 if found and max(found) > 0 else None

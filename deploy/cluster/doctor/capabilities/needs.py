"""The step `capabilities`: who needs which, and what it means that brokers lack it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafka import KafkaAdminClient
from kafka.errors import ClusterAuthorizationFailedError, KafkaError, TopicAuthorizationFailedError

from deniable.cluster.connection import groups
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.roles import Role
from deniable.cluster.topics.checks import TopicSetupError
from deniable.deploy.cluster.doctor.brokers import outage_finding
from deniable.deploy.cluster.doctor.capabilities import questions
from deniable.deploy.cluster.doctor.capabilities.questions import CANNOT, UNKNOWN, Question, Reply, Trial
from deniable.deploy.cluster.doctor.case import Capability, Case, StepAnswer
from deniable.deploy.cluster.permissions.acls import AclError

ALL = tuple(Role)
WORKER = (Role.AGGREGATOR,)
TRANSACTIONS = {
    22: "InitProducerId",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
}


class Need(NamedTuple):
    """One capability.

    Parameters
    ----------
    name : as printed.
    roles : that need it.
    requests : of Kafka's protocol, by number, without which the rest is not asked.
    ask : the rest.
    lack : what it means that brokers cannot, and what to do.
    is_vital : whether counts would be wrong without it, or nothing would work.
    """

    name: str
    roles: tuple[Role, ...]
    requests: Mapping[int, str]
    ask: Callable[[Question], Reply]
    lack: str
    is_vital: bool = True

    def answer(self, asked: Question) -> Capability:
        """Ask, and put the answer into words."""
        absent = [name for number, name in self.requests.items() if number not in asked.offered]
        try:
            word, what = (CANNOT, f"no {absent[0]}") if absent else self.ask(asked)
        except ClusterAuthorizationFailedError:
            word, what = UNKNOWN, "not permitted to ask (DescribeConfigs on the cluster)"
        except TopicAuthorizationFailedError:
            word, what = UNKNOWN, "not permitted to ask (DescribeConfigs on the topics)"
        except (KafkaError, TopicSetupError, AclError) as error:
            if outage_finding(error, asked.case.away):
                raise
            word, what = UNKNOWN, str(error)
        return Capability(self.name, word, f"{what}: {self.lack}" if word == CANNOT else what)


NEEDS = (
    Need(
        "transactions",
        WORKER,
        TRANSACTIONS,
        Trial("transactions", "one was begun, written to and aborted", "see the step transactions"),
        "a checkpoint would be stored in part, so counts would be wrong; use another Kafka",
    ),
    Need(
        "fencing",
        WORKER,
        TRANSACTIONS,
        Trial(
            "fencing",
            "a second producer with the same transactional id has fenced the first",
            "the first of two producers with the same transactional id could end its transaction",
        ),
        "a worker that lost its partition would write on, so counts would be wrong; use another Kafka",
    ),
    Need(
        "idempotence",
        (Role.PRODUCER, Role.AGGREGATOR),
        {22: "InitProducerId"},
        questions.offers,
        "producers and workers cannot send; use another Kafka",
    ),
    Need(
        "append times",
        WORKER,
        {},
        Trial("append times", "a record got the broker's", "a record kept its sender's"),
        "senders' clocks would decide what is late, and a replay might decide otherwise; use another Kafka",
    ),
    Need(
        "append times",
        (Role.RELAY,),
        {},
        questions.append_times,
        "relays would refuse the uploads, whose senders' clocks would decide what is late; use another Kafka",
    ),
    Need(
        "read_committed",
        WORKER,
        {1: "Fetch"},
        Trial("read_committed", "an aborted record was left out", "an aborted record was read"),
        "rows of failed checkpoints would count; use another Kafka",
    ),
    Need(
        "read_committed",
        (Role.READER,),
        {1: "Fetch"},
        questions.committed,
        "estimates of failed checkpoints would be read; use another Kafka",
    ),
    Need(
        "compaction",
        WORKER,
        {},
        questions.compaction,
        "`state` would grow without end, or become unreadable; enable the cleaner, and let "
        "delete.retention.ms of `state` be at least producer.id.expiration.ms",
    ),
    Need(
        "group protocol",
        (Role.AGGREGATOR, Role.RELAY),
        groups.REQUESTS,
        questions.group_protocol,
        "workers and relays, which join classic groups, share no partitions; allow these",
    ),
    Need(
        "topic settings",
        WORKER,
        {},
        questions.topic_settings,
        "counts would change, or be lost; do what the step topics says, or use a Kafka that takes these",
    ),
    Need(
        "quotas",
        ALL,
        {48: "DescribeClientQuotas"},
        questions.quotas,
        "one producer can fill the topics; limit it elsewhere",
        is_vital=False,
    ),
    Need(
        "authorizer",
        ALL,
        {},
        questions.authorizer,
        "whoever can connect may read, write and delete every topic; set authorizer.class.name",
        is_vital=False,
    ),
)


def capabilities(case: Case, _seconds: float) -> StepAnswer:
    """Ask for what the role needs; what brokers cannot is a finding, what they do not say is none."""
    admin = KafkaAdminClient(**case.cluster.client_settings())
    try:
        asked = Question(admin, case)
        answers = [(need, need.answer(asked)) for need in NEEDS if case.role in need.roles]
    finally:
        admin.close()
    found = [
        Finding(f"{each.name}: {each.what}", "", is_warning=not need.is_vital)
        for need, each in answers
        if each.answer == CANNOT
    ]
    unknown = sum(each.answer == UNKNOWN for _, each in answers)
    note = f"{unknown} of {len(answers)} unknown" if unknown else ""
    return StepAnswer(found, note, capabilities=tuple(each for _, each in answers))

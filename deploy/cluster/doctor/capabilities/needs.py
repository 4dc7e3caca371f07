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
ANOTHER = "use another Kafka: docs/kafka.md says which were run"
SETTINGS = "do what the step topics says; if brokers do not obey these settings, use another Kafka"
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
    lack : what it means that brokers cannot; empty if the answer says it.
    remedy : what to do then.
    is_vital : whether counts would be wrong without it, or nothing would work.
    """

    name: str
    roles: tuple[Role, ...]
    requests: Mapping[int, str]
    ask: Callable[[Question], Reply]
    lack: str
    remedy: str
    is_vital: bool = True

    def answer(self, asked: Question) -> Capability:
        """Ask, and put the answer into words."""
        absent = [name for number, name in self.requests.items() if number not in asked.offered]
        try:
            word, what = (CANNOT, f"the brokers do not offer {absent[0]}") if absent else self.ask(asked)
        except ClusterAuthorizationFailedError:
            word, what = UNKNOWN, "not permitted to ask (DescribeConfigs on the cluster)"
        except TopicAuthorizationFailedError:
            word, what = UNKNOWN, "not permitted to ask (DescribeConfigs on the topics)"
        except (KafkaError, TopicSetupError, AclError) as error:
            if outage_finding(error, asked.case.away):
                raise
            word, what = UNKNOWN, str(error)
        if word == CANNOT:
            return Capability(self.name, word, "; ".join(filter(None, (what, self.lack))), self.remedy)
        return Capability(self.name, word, what)


NEEDS = (
    Need(
        "transactions",
        WORKER,
        TRANSACTIONS,
        Trial("transactions", "one was begun, written to and aborted", "see the step transactions"),
        "a checkpoint would be stored in part, so counts would be wrong",
        ANOTHER,
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
        "a worker that lost its partition would write on, so counts would be wrong",
        ANOTHER,
    ),
    Need(
        "idempotence",
        (Role.PRODUCER, Role.AGGREGATOR),
        {22: "InitProducerId"},
        questions.offers,
        "producers and workers cannot send",
        ANOTHER,
    ),
    Need(
        "append times",
        WORKER,
        {},
        Trial("append times", "a record got the broker's time", "a record kept its sender's time"),
        "senders' clocks would decide what is late, and a replay might decide otherwise",
        SETTINGS,
    ),
    Need(
        "append times",
        (Role.RELAY,),
        {},
        questions.append_times,
        "senders' clocks would decide what is late, so relays refuse the uploads",
        SETTINGS,
    ),
    Need(
        "read_committed",
        WORKER,
        {1: "Fetch"},
        Trial("read_committed", "an aborted record was left out", "an aborted record was read"),
        "rows of failed checkpoints would count",
        ANOTHER,
    ),
    Need(
        "read_committed",
        (Role.READER,),
        {1: "Fetch"},
        questions.committed,
        "estimates of failed checkpoints would be read",
        ANOTHER,
    ),
    Need(
        "compaction",
        WORKER,
        {},
        questions.compaction,
        "",
        "let cleanup.policy of `state` be compact, its delete.retention.ms at least the brokers' "
        "producer.id.expiration.ms, and their log.cleaner.enable true",
    ),
    Need(
        "group protocol",
        (Role.AGGREGATOR, Role.RELAY),
        groups.REQUESTS,
        questions.group_protocol,
        f"workers and relays, which join {groups.PROTOCOL} groups, share no partitions",
        f"let {groups.ALLOWED_PROTOCOLS} of the brokers contain {groups.PROTOCOL}",
    ),
    Need(
        "topic settings",
        WORKER,
        {},
        questions.topic_settings,
        "counts would change, or be lost",
        SETTINGS,
    ),
    Need(
        "quotas",
        ALL,
        {48: "DescribeClientQuotas"},
        questions.quotas,
        "one producer can fill the topics",
        "limit producers elsewhere",
        is_vital=False,
    ),
    Need(
        "authorizer",
        ALL,
        {},
        questions.authorizer,
        "whoever can connect may read, write and delete every topic",
        "set authorizer.class.name on the brokers",
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
        Finding(f"{each.name}: {each.what}", each.remedy, is_warning=not need.is_vital)
        for need, each in answers
        if each.answer == CANNOT
    ]
    words = [each.answer for _, each in answers]
    some = [f"{words.count(word)} of {len(words)} {word}" for word in (CANNOT, UNKNOWN) if word in words]
    return StepAnswer(found, ", ".join(some), capabilities=tuple(each for _, each in answers))

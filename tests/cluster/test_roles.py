"""The plan of permissions, without a broker: small enough to read, and free of what nobody should have."""

import re

from click import Context
from kafka.admin import ACLOperation, ResourceType

from deniable.cluster.cluster import Cluster
from deniable.cluster.permissions.findings import lack, unreadable
from deniable.cluster.permissions.roles import Role, permissions_of, required_permissions, roles_of
from deniable.cluster.security import Security
from deniable.deploy.cluster.permissions.quotas import DEFAULT_BYTES_PER_SECOND
from deniable.deploy.cluster.topics.command import create
from deniable.protocol.topic_names import Topics
from tests.support.messages import PinMessages
from tests.support.paths import REPOSITORY

TOPICS = Topics("d-", 4)


def shown(role: Role) -> list[str]:
    return [str(each) for each in permissions_of(role, TOPICS)]


def test_each_role_may_do_its_work_alone() -> None:
    """Edges only write uploads, relays read no counts; workers neither write reports nor read `rejected`."""
    assert {role: shown(role) for role in Role if role is not Role.AGGREGATOR} == {
        Role.PRODUCER: ["Write topic d-reports", "Read topic d-collections"],
        Role.READER: ["Read topic d-estimates", "Read topic d-windows", "Read groups d-reader-*"],
        Role.EDGE: ["Write topic d-uploads"],
        Role.RELAY: [
            "Read topic d-uploads",
            "Write topic d-uploads",
            "Write topic d-reports",
            "Write topic d-rejected-uploads",
            "DescribeConfigs topic d-uploads",
            "Read group d-relay",
        ],
    }
    aggregator = shown(Role.AGGREGATOR)
    assert {"Write topic d-uploads", "Read topic d-rejected"}.isdisjoint(aggregator)
    assert aggregator[-2:] == ["Read group d-aggregator", "Write transactional ids d-aggregator-*"]


def test_edges_and_relays_are_roles_of_deployments_that_take_uploads() -> None:
    assert roles_of(TOPICS) == [Role.PRODUCER, Role.AGGREGATOR, Role.READER]
    assert roles_of(Topics("d-", 4, takes_uploads=True)) == list(Role)


def test_nobody_may_change_topics_settings_or_permissions_nor_requires_collections() -> None:
    for role in Role:
        planned, required = permissions_of(role, TOPICS), required_permissions(role, TOPICS)
        assert len(set(planned)) == len(planned), role
        allowed = {ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DESCRIBE_CONFIGS}
        assert {each.operation for each in planned} <= allowed, role
        assert ResourceType.CLUSTER not in {each.kind for each in planned}, role
        assert all(each.name.startswith("d-") for each in planned), role
        assert {each.name for each in set(planned) - set(required)} <= {"d-collections"}, role
        assert "d-collections" not in {each.name for each in required}, role


def test_prefixes_reach_no_other_role() -> None:
    """The ids of ledgers begin as no group does that a reader may join, and the other way round."""
    assert TOPICS.transactional_id(3).startswith(TOPICS.transactional_ids)
    assert not TOPICS.group.startswith(TOPICS.reader_groups)
    assert not TOPICS.reader_groups.startswith(TOPICS.transactional_ids)


def test_messages(pin_messages: PinMessages) -> None:
    cluster = Cluster("kafka:9093", Security(username="app", password="p"))
    write = permissions_of(Role.PRODUCER, TOPICS)[0]
    pin_messages(
        {
            "a role lacks what it needs": lambda: str(lack(cluster, [write], Role.PRODUCER)),
            "it has what another role needs": lambda: str(lack(cluster, [write], Role.PRODUCER, Role.READER)),
            "a role lacks what it may have": lambda: str(unreadable(cluster, write, Role.PRODUCER)),
            "no role needs it": lambda: str(lack(cluster, [write], None)),
        }
    )


def test_unnamed_principal_is_described() -> None:
    write = permissions_of(Role.PRODUCER, TOPICS)[0]
    assert lack(Cluster("127.0.0.1:9092"), [write], Role.PRODUCER).what.startswith("User:ANONYMOUS may not ")


def test_the_default_quota_carries_what_a_producer_makes() -> None:
    """Half a million RAPPOR reports of 128 bits a second."""
    assert DEFAULT_BYTES_PER_SECOND // 16 > 500_000


def test_the_examples_that_name_principals_name_every_role() -> None:
    """Only those that are named are allowed anything; so whoever copies an example must get all of them.

    Edges and relays have an example of their own, for deployments that take uploads.
    """
    docs = REPOSITORY / "docs" / "security.md"
    (in_docs,) = re.findall(r"^    (deniable topics create --acls --.*)$", docs.read_text(), re.MULTILINE)
    (in_help,) = re.findall(r"Example: (deniable topics create .*)", create.help or "")
    for example in (in_docs, in_help):
        assert all(f" --{role} " in example for role in roles_of(TOPICS))
        create.parse_args(Context(create), example.split()[3:])
    assert "`deniable topics create --acls --edge edge-1 --relay relay-1`" in docs.read_text()

"""Each principal on a real secured broker: it can do its work, and nothing else.

With `-s` the table of operations is printed as markdown.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import uuid4

import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ACLOperation, ResourcePattern, ResourceType

from deniable.cluster.permissions.findings import missing
from deniable.cluster.permissions.roles import Role, permissions_of, required_permissions
from deniable.cluster.topics.plan import plan
from deniable.deploy.cli.commands import deniable
from deniable.deploy.cli.main import kafka_errors
from deniable.estimators.errors import DeniableError
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.brokers.secured.deployments import SecuredDeployment
from tests.support.brokers.secured.principals import Principals
from tests.support.deploy.acl_operations import operations, tried
from tests.support.needed import but_for

pytestmark = pytest.mark.broker

CANARY = """\
  - {name: canary, mechanism: k-rr, size: 4, other: false, epsilon: 2.0, canary: true, window_seconds: 2,
     grace_seconds: 2, minimum_reports: 1000, budget: none}
"""
REPORTS = 300
SETTLE_SECONDS = 60


@pytest.fixture(scope="module")
def principals(secured_broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Principals:
    """All topics and permissions, made by the command as an administrator runs it."""
    made = Principals(secured_broker, tmp_path_factory.mktemp("acls"), f"test-{uuid4().hex[:12]}-")
    for each in (made.admin, made.nobody, *made.by_role.values()):
        with (each.folder / "deniable.yaml").open("a", encoding="utf-8") as file:
            file.write(CANARY)
    named = [f"--{role}={each.user}" for role, each in made.by_role.items()]
    created = made.admin.run("topics", "create", "--acls", *named)
    assert (created.returncode, created.stderr) == (0, "9 topics created\n")
    planned = [
        f"User:{each.user} may {permission}"
        for role, each in made.by_role.items()
        for permission in permissions_of(role, made.topics)
    ]
    quotas = [
        f"User:{made.by_role[role].user} sends at most {most} bytes a second to each broker"
        for role, most in ((Role.PRODUCER, "10,000,000"), (Role.EDGE, "50,000,000"))
    ]
    assert created.stdout.splitlines()[9:] == [*planned, *quotas]
    return made


@pytest.fixture(scope="module")
def working(principals: Principals) -> Iterator[Principals]:
    """Everybody at work: reports sent by the producer, a worker, and estimates that the reader has seen."""
    roles = (Role.PRODUCER, Role.AGGREGATOR, Role.READER)
    producer, aggregator, reader = (principals.by_role[role] for role in roles)
    with aggregator.running("worker.log", "aggregate", "--web-port", "0"):
        lines = "".join(f"{'AA' if i % 3 else 'B6'}\n" for i in range(REPORTS))
        arguments = ("produce", "carrier", "--field", "carrier", "--no-clients")
        sent = producer.run(*arguments, given=f"carrier\n{lines}".encode())
        assert (sent.returncode, sent.stdout) == (0, ""), sent.stderr
        assert f"{REPORTS} reports sent in " in sent.stderr
        with reader.piped("watch", "carrier") as watching:
            assert watching.stdout is not None
            deadline, seen = time.monotonic() + SETTLE_SECONDS, 0
            while seen < REPORTS:
                assert time.monotonic() < deadline, aggregator.output("worker.log")
                estimate = json.loads(watching.stdout.readline())
                seen += estimate["reports"] if estimate["final"] else 0
        yield principals


def invoke(
    deployment: SecuredDeployment, monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str]:
    """Exit status and output, as of the command; unexpected errors are raised."""
    monkeypatch.chdir(deployment.folder)
    ended = CliRunner().invoke(deniable, arguments, input="carrier\nAA\n")
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        if not isinstance(ended.exception, (DeniableError, *kafka_errors())):
            raise ended.exception
        return 1, f"Error: {ended.exception}"
    return ended.exit_code, ended.output


PAST = ("carrier", "--from", "2026-01-31T00:00Z")
SINCE_YESTERDAY = ("--from", f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%dT%H:%MZ}")
COMMANDS = {
    "produce": ("produce", "carrier", "--field", "carrier", "--no-clients"),
    "canary": ("canary", "canary"),
    "aggregate": ("aggregate", "--web-port", "0"),
    "watch": ("watch", "carrier"),
    "rollup": ("rollup", *PAST),
    "decode": ("decode", "place", "--candidates", "deniable.yaml", *PAST[1:]),
    "detect": ("detect", "carrier", *SINCE_YESTERDAY),
    "detect --reports": ("detect", "place", *SINCE_YESTERDAY, "--reports", "1"),
    "replay": ("replay",),
    "replay --rebuild": ("replay", "--rebuild"),
    "replay --accept-loss": ("replay", "--accept-loss"),
    "retire": ("retire", "gone"),
    "relay": ("relay",),
    **{
        f"inspect {name}": ("inspect", name)
        for name in ("reports", "state", "counts", "rejected", "estimates", "windows", "collections")
    },
}
READS = {"watch", "rollup", "decode", "detect", "inspect estimates", "inspect windows"}
MAY = {
    "nobody": set[str](),
    Role.PRODUCER: {"produce", "canary", "inspect collections"},
    Role.READER: READS,
    # It may write markers, so packs, too.
    Role.AGGREGATOR: set(COMMANDS) - {"inspect rejected", "replay --rebuild", "relay"},
    Role.EDGE: set[str](),
    Role.RELAY: {"relay", "produce", "canary"},  # it may write packs, as producers may
}


@pytest.mark.parametrize("name", but_for({"nobody", Role.AGGREGATOR}, MAY, pytest.mark.nightly))
def test_forbidden_command_is_one_sentence(
    principals: Principals, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    deployment = principals.nobody if name == "nobody" else principals.by_role[Role(name)]
    for command, arguments in COMMANDS.items():
        if command in MAY[name]:
            continue
        status, message = invoke(deployment, monkeypatch, *arguments)
        assert status == 1, command
        (line,) = message.splitlines()
        assert line.startswith(f"Error: User:{deployment.user} may not "), command
        assert "deniable topics create --acls --" in line or "kafka-acls.sh --bootstrap-server " in line


@pytest.mark.all
def test_everybody_can_do_their_work(working: Principals, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each command says is looked at elsewhere; here it is let do it."""
    aggregator, reader = working.by_role[Role.AGGREGATOR], working.by_role[Role.READER]
    status, message = invoke(aggregator, monkeypatch, "replay")
    assert (status, message.splitlines()[-1]) == (0, "difference: 0")
    for deployment in (aggregator, reader):
        status, message = invoke(deployment, monkeypatch, "rollup", *PAST)
        assert (status, f"{REPORTS} reports, 3 values" in message) == (0, True), message
        status, message = invoke(deployment, monkeypatch, *COMMANDS["detect"])
        assert re.search("impossible: [01] of [1-9]", message), message
    status, message = invoke(reader, monkeypatch, "inspect", "estimates")
    assert (status, "carrier" in message) == (0, True), message
    for command in sorted(MAY[Role.AGGREGATOR]):
        if command.startswith("inspect"):
            assert invoke(aggregator, monkeypatch, *COMMANDS[command])[0] == 0, command
    assert invoke(aggregator, monkeypatch, "retire", "gone") == (1, "Error: no collection 'gone' is counted")
    assert invoke(aggregator, monkeypatch, "retire", "carier") == (
        1,
        "Error: no collection 'carier' is counted; did you mean 'carrier'?",
    )
    with KafkaAdminClient(**aggregator.cluster.client_settings()) as admin:
        for _ in range(20):  # while the worker's transactions go on, which asking does not disturb
            assert missing(admin, working.topics, permissions_of(Role.AGGREGATOR, working.topics)) == []
    assert "ledger lost" not in aggregator.output("worker.log")
    nothing = (0, "nothing is lost: every ledger's position is within the log\n")
    assert invoke(aggregator, monkeypatch, "replay", "--accept-loss") == nothing


@pytest.mark.parametrize("others", [1, pytest.param(len(Role) - 1, marks=pytest.mark.nightly)])
def test_check_accepts_each_principal_only_in_its_role(
    principals: Principals, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """Each role is tried as its own, and as so many of those that follow."""
    roles = list(Role)
    for number, asked in product(range(len(roles)), range(others + 1)):
        role, tried_as = roles[number], roles[(number + asked) % len(roles)]
        deployment, has = principals.by_role[role], permissions_of(role, principals.topics)
        status, message = invoke(deployment, monkeypatch, "topics", "check", "--as", str(tried_as))
        seen = {each.name for each in has}  # Read and Write include Describe
        lacks = [
            str(each)
            for each in permissions_of(tried_as, principals.topics)
            if each not in has
            if each.operation is not ACLOperation.DESCRIBE or each.name not in seen
            # The broker hides the settings of topics that are not seen.
            if each.operation is not ACLOperation.DESCRIBE_CONFIGS or each.name in seen
        ]
        assert status == (1 if lacks else 0), message
        if lacks:
            (line,) = message.splitlines()
            assert line.startswith(f"Error: User:{deployment.user} may not {', '.join(lacks)}, which a")
            if any(each not in has for each in required_permissions(tried_as, principals.topics)):
                assert f"did you mean --as {role}? " in line
            assert line.endswith(f"--acls --{tried_as} {deployment.user}")


def test_second_call_changes_nothing_and_lists_extra_permissions(
    principals: Principals, monkeypatch: pytest.MonkeyPatch, secured_broker: SecuredBroker
) -> None:
    named = [f"--{role}={each.user}" for role, each in principals.by_role.items()]
    again = invoke(principals.admin, monkeypatch, "topics", "create", "--acls", *named)
    assert again == (
        0,
        "all topics existed already\nall permissions and quotas existed already\n",
    )
    late = principals.add("late")
    extra = ResourcePattern(ResourceType.TOPIC, principals.topics.rejected)
    secured_broker.allow(late.user, extra, ACLOperation.READ)
    arguments = ("--acls", "--producer", f"User:{late.user}", "--producer-bytes-per-second", "0")
    assert invoke(principals.admin, monkeypatch, "topics", "create", *arguments) == (
        0,
        "all topics existed already\n"
        f"User:{late.user} may Write topic {principals.topics.reports}\n"
        f"User:{late.user} may Read topic {principals.topics.collections}\n"
        f"more than its role needs, left unchanged: User:{late.user}: allow Read topic "
        f"{principals.topics.rejected}\n",
    )


def test_missing_rights_to_create_are_reported(
    principals: Principals, monkeypatch: pytest.MonkeyPatch
) -> None:
    for deployment in (principals.nobody, principals.by_role[Role.AGGREGATOR]):
        status, message = invoke(deployment, monkeypatch, "topics", "create", "--acls")
        assert (status, len(message.splitlines())) == (1, 1), message
        assert f"User:{deployment.user} may not" in message
        assert "administrator of the cluster" in message


@pytest.fixture(scope="module")
def apart(secured_broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Principals:
    """A deployment without workers, whose topics hold a record each that means nothing."""
    made = Principals(secured_broker, tmp_path_factory.mktemp("apart"), f"test-{uuid4().hex[:12]}-")
    made.set_up()
    with closing(KafkaProducer(**secured_broker.admin_settings())) as kafka:
        for topic in plan(made.topics):
            kafka.send(topic.name, b"of a test", key=b"of a test", partition=0).get(20)
    return made


@pytest.mark.nightly
def test_each_operation_is_tried_by_each_principal(apart: Principals) -> None:
    """Whatever is not of a role is refused by the broker, in so many words; by certificate as by password."""
    columns = {f"{role}": (role, deployment) for role, deployment in apart.by_role.items()}
    columns["producer by certificate"] = Role.PRODUCER, apart.by_certificate(Role.PRODUCER)
    results = {title: tried(deployment) for title, (_, deployment) in columns.items()}
    table = [f"| operation | {' | '.join(columns)} |", f"|---{'|---' * len(columns)}|"]
    wrong = []
    for name, (roles, _) in operations(apart.topics).items():
        cells = {title: results[title][name] for title in columns}
        table.append(f"| {name} | {' | '.join(map(str, cells.values()))} |")
        wrong += [
            (name, title, cell)
            for title, cell in cells.items()
            if not (cell.is_allowed if columns[title][0] in roles else cell.is_refused)
        ]
    print("\n" + "\n".join(table))  # noqa: T201 - the record, with -s
    assert wrong == []

"""The whole path of reports, by principals that may do what their role needs and no more."""

from collections.abc import Mapping

from kafka import KafkaAdminClient

from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.permissions import acls as acl_setup
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.brokers.secured.deployments import SecuredDeployment

REPORTS = 300


def count_reports(broker: SecuredBroker, by_role: Mapping[Role, SecuredDeployment]) -> str:
    """Produce, count, estimate, read and recount; return all output.

    Parameters
    ----------
    broker : whose superuser allows what each role needs.
    by_role : deployments of producer, aggregator and reader, whose topics exist.
    """
    outputs = []

    def run(role: Role, *arguments: str, given: bytes = b"") -> str:
        ended = by_role[role].run(*arguments, given=given)
        assert ended.returncode == 0, f"{role} {arguments}: {ended.stdout}{ended.stderr}"
        outputs.append(ended.stdout + ended.stderr)
        return ended.stdout

    worker = by_role[Role.AGGREGATOR]
    with KafkaAdminClient(**broker.admin_settings()) as admin:
        acl_setup.allow(admin, worker.topics, {role: [each.user] for role, each in by_role.items()})
    for role in by_role:
        run(role, "doctor", "--as", role.value)
    with worker.running("worker.log", "aggregate", "--web-port", "0"):
        worker.wait_until_ready("worker.log")
        lines = b"carrier\n" + b"AA\n" * REPORTS
        run(Role.PRODUCER, "produce", "carrier", "--field", "carrier", "--no-clients", given=lines)
        assert run(Role.AGGREGATOR, "replay") == "difference: 0\n"
        assert '"carrier"' in run(Role.READER, "inspect", "estimates", "--tail", "1")
    return "".join([*outputs, worker.output("worker.log")])

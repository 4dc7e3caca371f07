"""The whole path of reports, by principals that may do what their role needs and no more."""

import json
from collections.abc import Mapping

from kafka import KafkaAdminClient

from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.permissions import acls as acl_setup
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.brokers.secured.deployments import SecuredDeployment
from tests.support.deployments import Deployment
from tests.support.edge.edge_site import EdgeSite
from tests.support.processes import new_port, wait_until

ROLES = (Role.PRODUCER, Role.AGGREGATOR, Role.READER, Role.EDGE, Role.RELAY)
REPORTS, UPLOADED = 300, 200


def count_reports(broker: SecuredBroker, by_role: Mapping[Role, SecuredDeployment]) -> str:
    """Produce, upload, count, estimate, read and recount; return all output.

    Parameters
    ----------
    broker : whose superuser allows what each role needs.
    by_role : a deployment of each of ROLES; their topics exist.
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
    edge, relay = by_role[Role.EDGE], by_role[Role.RELAY]
    site = EdgeSite(edge, new_port())
    with (
        worker.running("worker.log", "aggregate", "--web-port", "0"),
        relay.running("relay.log", "relay"),
        site.running(),
    ):
        worker.wait_until_ready("worker.log")
        for role in by_role:
            run(role, "doctor", "--as", role.value)
        arguments = ("produce", "carrier", "--field", "carrier", "--no-clients")
        run(Role.PRODUCER, *arguments, given=b"carrier\n" + b"AA\n" * REPORTS)
        sent = _device(site).run(*arguments, given=b"carrier\n" + b"AA\n" * UPLOADED)
        assert sent.returncode == 0, sent.stderr
        assert wait_until(lambda: _estimated(by_role[Role.READER]) == REPORTS + UPLOADED, 60)
        assert run(Role.AGGREGATOR, "replay") == "difference: 0\n"
    logs = ((worker, "worker.log"), (relay, "relay.log"), (edge, "edge.log"))
    return "".join([*outputs, *(each.output(log) for each, log in logs)])


def _device(site: EdgeSite) -> Deployment:
    """Return the folder of a producer that knows of the edge alone."""
    folder = site.deployment.folder / "device"
    folder.mkdir()
    device = Deployment(folder, "127.0.0.1:1", site.deployment.prefix)
    file = folder / "deniable.yaml"
    text = file.read_text().replace("pack_seconds: 0.2", f'pack_seconds: 0.2, deliver: "{site.url}"')
    file.write_text("\n".join(line for line in text.splitlines() if not line.startswith("kafka:")))
    return device


def _estimated(reader: SecuredDeployment) -> int:
    """Return how many reports the newest estimates of all windows have."""
    lines = reader.run("inspect", "estimates", "--tail", "100").stdout.splitlines()
    records = [json.loads(line) for line in lines if line.startswith("{")]
    return sum({each["window_start"]: each["reports"] for each in records}.values())

"""`deniable doctor`."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import click

from deniable.cluster.permissions.roles import Role
from deniable.config.file import load
from deniable.deploy.cli import standard_streams
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import config_option, servers_option
from deniable.deploy.cli.signals import handle, leave_at_once
from deniable.deploy.cluster.doctor.case import Case
from deniable.deploy.cluster.doctor.examination import Result, examine
from deniable.deploy.cluster.permissions.role_option import role_option

NAME_WIDTH = 16


@click.command()
@role_option("Whose needs are examined.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON line a step.")
@config_option
@servers_option
def doctor(role: str, is_json: bool, config: Path, bootstrap_servers: str | None) -> None:
    """Find out within 10 s what is wrong between this machine and Kafka, or the edge it delivers to.

    As an aggregator it writes a record for each broker to `state`, in a transaction that it aborts, so nobody
    sees them. It says what the brokers can do: ok, cannot, or unknown.

    Example: deniable doctor --as producer
    """
    case = Case(load(config, bootstrap_servers), Role(role), time.time)
    if not case.delivers_to_edge and (security := case.configuration.cluster.security) is not None:
        security.check()  # local files, before any broker is asked
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # there is nothing to clean up
        handle(number, leave_at_once)
    silence_clients()
    has_failed = False
    for result in examine(case):
        click.echo(_json(result) if is_json else lines_of(result))
        has_failed = has_failed or result.status == "failed"
    lost = standard_streams.flush()
    if lost:
        raise click.ClickException(lost)
    sys.stderr.flush()
    os._exit(int(has_failed))  # an abandoned step may still wait for a name or a broker


def lines_of(result: Result) -> str:
    """Return a step's result as printed: status, findings and remedies."""
    head = f"{result.step:<{NAME_WIDTH}}"
    indent = " " * NAME_WIDTH
    first = f"{head}{result.status}: {result.note}" if result.note else f"{head}{result.status}"
    lines = []
    for each in result.capabilities:
        lines.append(f"{indent}{each.name:<{NAME_WIDTH}}{each.answer}: {each.what}")
        if each.remedy:
            lines.append(f"{indent}{'':<{NAME_WIDTH}}  {each.remedy}")
    if lines or not result.findings:
        return "\n".join([first, *lines])
    for finding in result.findings:
        word = "warning" if finding.is_warning else "failed"
        lines.append(f"{indent}{word}: {finding.what}")
        if finding.remedy:
            lines.append(f"{indent}  {finding.remedy}")
    return head + "\n".join(lines).lstrip()


def _json(result: Result) -> str:
    findings = [
        {"what": each.what, "remedy": each.remedy, "is_warning": each.is_warning} for each in result.findings
    ]
    fields = {"step": result.step, "status": result.status, "note": result.note, "findings": findings}
    if result.capabilities:
        fields["capabilities"] = [each._asdict() for each in result.capabilities]
    return json.dumps({**fields, "seconds": round(result.seconds, 3)})

"""`deniable replay`."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.maintenance.ledger_changes import accept_loss
from deniable.aggregator.maintenance.rebuild import Rebuilt, rebuild
from deniable.aggregator.maintenance.replay import Comparison, ReplayError
from deniable.aggregator.maintenance.replay import replay as recount
from deniable.cluster.connection.start_log import SAY_SECONDS
from deniable.cluster.existing_topics.of_aiokafka import create_no_topics_here
from deniable.cluster.topics.checks import require_readable
from deniable.config.file import Configuration, WrongUseError, load
from deniable.config.relay_secret import relay_secret
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import NumberRange, config_option, servers_option
from deniable.deploy.cluster.deployment import deployment_of
from deniable.deploy.services.aggregate.replay_uploads import replay_uploads
from deniable.protocol.words import number_of
from deniable.relay.keys import RelayKeys


@click.command()
@click.option(
    "--wait",
    type=NumberRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the workers to count what is in the log.",
)
@click.option(
    "--rebuild",
    "is_rebuild",
    is_flag=True,
    help="First recount the log into an empty state topic. Stop all workers before.",
)
@click.option(
    "--accept-loss",
    "is_loss_accepted",
    is_flag=True,
    help="Instead, continue counting behind records that were deleted before they were counted.",
)
@click.option(
    "--uploads",
    "is_of_uploads",
    is_flag=True,
    help="First recount what devices uploaded, and compare with the packs that count. Needs the "
    "relays' secret.",
)
@config_option
@servers_option
def replay(
    wait: float,
    is_rebuild: bool,
    is_loss_accepted: bool,
    is_of_uploads: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> int:
    """Recount the log and compare with the stored counts; exit status 1 unless equal.

    Waits until the workers have counted what is in the log at the start. If the log no longer begins at
    offset 0, windows that may lack records are not compared. With --uploads, the difference includes reports
    of uploads that a relay took and no worker counts.

    Example: deniable replay
    """
    if is_rebuild + is_loss_accepted + is_of_uploads > 1:
        raise click.UsageError("give one of --rebuild, --accept-loss and --uploads")
    loaded = load(config, bootstrap_servers)
    keys = _keys(loaded) if is_of_uploads else None
    silence_clients()
    create_no_topics_here()
    deployment = deployment_of(loaded)
    if is_loss_accepted:
        _accept_loss(deployment)
        return 0
    progress = _Progress()
    if is_rebuild:
        progress("recounting the log into the ledgers that are lost")
        _rebuild(deployment)
    lost = 0 if keys is None else replay_uploads(deployment, keys, wait, progress)
    return _compare(run_until_signalled(recount(deployment, wait, progress)), lost)


class _Progress:
    """Prints what the command does on stderr: the first step at once, then the present one every 10 s."""

    def __init__(self) -> None:
        self._due = 0.0

    def __call__(self, step: str) -> None:
        if (now := time.monotonic()) >= self._due:
            click.echo(f"{step} …", err=True)
            self._due = now + SAY_SECONDS


def _keys(loaded: Configuration) -> RelayKeys:
    if not loaded.takes_uploads:
        raise WrongUseError(f"{loaded.path}: --uploads needs a section relay: without one no device uploads")
    return RelayKeys(relay_secret(loaded, creates=False))


def _accept_loss(deployment: Deployment) -> None:
    lost = run_until_signalled(accept_loss(deployment))
    for partition, loss in lost.items():
        click.echo(f"partition {partition}: {loss}")
    if not lost:
        click.echo("nothing is lost: every ledger's position is within the log")


def _rebuild(deployment: Deployment) -> None:
    require_readable(deployment.cluster, deployment.topics, deployment.topics.rejected)  # no role may read it
    rebuilt = run_until_signalled(rebuild(deployment))
    for partition, each in rebuilt.items():
        click.echo(f"partition {partition}: {number_of(each.records, 'record')} counted again", err=True)
    for sentence in _findings(deployment, rebuilt):
        click.echo(sentence, err=True)


def _findings(deployment: Deployment, rebuilt: Mapping[int, Rebuilt]) -> Iterator[str]:
    """What an operator must know of a rebuild, a sentence each."""
    for name in sorted({name for each in rebuilt.values() for name in each.unrecorded}):
        lacking = [partition for partition, each in rebuilt.items() if name in each.unrecorded]
        yield (
            f"{name}: {deployment.topics.counts} holds no terms of {_listed('partition', lacking)}, so all "
            f"windows counted there are judged by the present collection file; estimates that this changes "
            f"are published again once workers run"
        )
    for disagreement in sorted({each.disagreement for each in rebuilt.values() if each.disagreement}):
        yield f"workers will refuse this collection file: {disagreement}"


def _listed(thing: str, numbers: Sequence[int]) -> str:
    return f"{thing}{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def _compare(found: Comparison, lost: int = 0) -> int:
    """Print what was found, and the difference with `lost` reports of uploads added."""
    windows = sum(window[1] >= found.whole_from for window in found.counts.windows())
    click.echo(
        f"{number_of(found.records, 'record')} recounted; {number_of(windows, 'window')}, "
        f"{number_of(found.finals, 'final estimate')} and {found.final_counts} final counts compared",
        err=True,
    )
    if found.foreign:
        foreign = number_of(found.foreign, "record")
        click.echo(f"skipped {foreign} of the estimates topic, not of this version", err=True)
    nothing = (
        "no report has come yet, all were rejected, or each window lacks deleted records (retention_seconds)"
    )
    if found.whole_from:
        since = datetime.fromtimestamp(found.whole_from, UTC).isoformat(timespec="seconds")
        left_out = len(found.counts.windows()) - windows
        click.echo(
            f"windows before {since} were not compared ({left_out}): some of their records may be deleted",
            err=True,
        )
        nothing = (
            f"records were deleted; only windows that start at {since} or later can be compared, and none of "
            f"those is counted and still stored (retention_seconds)"
        )
    difference = found.difference + lost
    if (found.records or found.whole_from) and not windows and not difference:
        raise ReplayError(f"nothing to compare: {nothing}")
    click.echo(f"difference: {difference}")
    return 0 if difference == 0 else 1

"""Let `deniable dev` continue with an edited collection file, without `revision` and `deniable retire`.

Rule: only `dev` does this, whose one worker has ended when it starts. Everywhere else an operator decides.
"""

import asyncio

import click

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.maintenance.adoption import Adoption, adoption
from deniable.aggregator.maintenance.ledger_changes import retire
from deniable.aggregator.topics.collection_publisher import CollectionPublisher
from deniable.config.file import Configuration
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cluster.deployment import deployment_of
from deniable.estimators.errors import DeniableError

FORMER = "what was counted {} stays in the estimates already published"


class FormerDefinitionError(DeniableError, RuntimeError):
    """The file holds a definition that was retired, which never counts again; the message says what to do."""


def accept(loaded: Configuration) -> Deployment:
    """Retire what the file no longer holds, and print a line for each collection that has changed.

    Returns
    -------
    The deployment, with a revision that the worker's ledgers accept: the file's or a higher one.

    Raises
    ------
    FormerDefinitionError if a definition of the file was retired; KafkaError; LedgerRefusedError.
    """
    return run_until_signalled(_accept(loaded, deployment_of(loaded)))


def publish(deployment: Deployment) -> None:
    """Publish what the worker counts, so that a producer started next compares with that.

    The worker does it too, within a second or two; what cannot be published is in its log.
    """
    publisher = CollectionPublisher(
        deployment.cluster,
        deployment.topics.collections,
        deployment.collections.values(),
        deployment.revision,
    )
    asyncio.run(publisher.publish())


async def _accept(loaded: Configuration, deployment: Deployment) -> Deployment:
    found = await adoption(deployment)
    if found.retired:
        raise FormerDefinitionError(
            f"{loaded.path} defines {found.retired[0]} as it was before an edit, and a definition that was "
            "given up does not count again. Give the collection another name or definition, or empty Kafka "
            "with deniable dev --fresh"
        )
    deployment = deployment._replace(revision=found.revision)
    for name in (*found.redefined, *found.removed):
        await retire(deployment, name)
    for line in changes(found):
        click.echo(line, err=True)
    return deployment


def changes(found: Adoption) -> list[str]:
    """Return a line for each collection that an edit has changed."""
    lines = [f"{name}: defined differently now; {FORMER.format('before')}" for name in found.redefined]
    lines += [f"{name}: no longer in the file; {FORMER.format('of it')}" for name in found.removed]
    lines += [f"{name}: counted from now on" for name in found.added]
    return lines + [
        f"{name}: the new grace, retention or window_packs apply to windows that begin in more than 5 minutes"
        for name in found.changed
    ]

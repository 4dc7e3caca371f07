"""`deniable dev`: broker, topics, one worker, and a relay and an edge if asked for, until Ctrl-C."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import click

from deniable.cluster.cluster import is_loopback
from deniable.config.file import Configuration, WrongUseError, load
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child, stop
from deniable.deploy.broker.errors import BrokerError
from deniable.deploy.broker.ports import free_port, require_free
from deniable.deploy.cli.options import Folder, config_option
from deniable.deploy.cluster.topics import setup as topic_setup
from deniable.deploy.start.edited_file import accept, publish
from deniable.deploy.start.trial_devices import ready_devices, require_extra, start_devices
from deniable.deploy.start.trial_folder import WORKER_LOG, empty, refuse_second
from deniable.deploy.start.trial_worker import (
    STEP_SECONDS,
    TrialWorkerError,
    ending,
    ready_page_of,
    start_worker,
)
from deniable.estimators.errors import DeniableError

FOLDER = ".deniable-dev"
STOP_SECONDS = 20.0

# Of the extra `worker`: look before Kafka is started, without loading them.
for _module in ("aiohttp", "scipy"):
    if find_spec(_module) is None:
        raise ModuleNotFoundError(f"No module named {_module!r}", name=_module)


class DevError(DeniableError, RuntimeError):
    """`deniable dev` cannot start here; the message says what to do."""


@click.command()
@config_option
@click.option(
    "--data-dir",
    type=Folder(),
    help=f"Keep Kafka's data and the logs here.  [default: {FOLDER} beside the file]",
)
@click.option(
    "--web-port",
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    help="Port of the page; 0: a free one.",
)
@click.option(
    "--edge-port",
    type=click.IntRange(0, 65535),
    default=8330,
    show_default=True,
    help="Port of the edge, if the file has that section; 0: a free one.",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="First delete the data of former runs. Budgets stay spent: they are with the producer.",
)
def dev(config: Path, data_dir: Path | None, web_port: int, edge_port: int, fresh: bool) -> None:
    """Run Kafka, the topics and a worker with its page on this machine, until Ctrl-C.

    If the file has a section relay or edge, it runs one of these, too.

    The broker listens where the collection file says, 127.0.0.1:9092 by default, so all other commands work
    beside it. Its data stay for the next run. After an edit of the file, start it again: it ends collections
    that are gone or defined differently, and says so. Elsewhere that takes deniable retire, and workers,
    relays and edges take up an edit on SIGHUP, or with --reload-changes.

    Example: deniable dev
    """
    loaded = load(config)
    port = _port(loaded)
    folder = data_dir or config.parent / FOLDER
    refuse_second(folder)
    require_extra(loaded)
    _require_free(port, {"web": web_port} | ({} if loaded.edge is None else {"edge": edge_port}), loaded.path)
    if fresh:
        empty(folder)
    with ExitStack() as stack:
        click.echo("starting Kafka …", err=True)
        broker = stack.enter_context(Broker(folder, port))
        if topic_setup.create(
            loaded.cluster, loaded.topics, loaded.kafka.replication_factor, loaded.collections
        ):
            click.echo("created the topics", err=True)
        deployment = accept(loaded)
        click.echo("starting a worker …", err=True)
        log = folder / WORKER_LOG
        worker = start_worker(config, deployment.revision, web_port, log)
        running = {"worker": (worker, log)}
        stack.callback(_stop, running)
        if loaded.takes_uploads:
            click.echo("starting what devices reach …", err=True)
        devices = start_devices(loaded, folder, edge_port or free_port())
        running |= devices
        page = ready_page_of(worker, log)
        publish(deployment)
        lines = ready_devices(devices)
        click.echo("\n".join([f"Kafka: {broker.bootstrap_servers}", f"page:  {page}", *lines]))
        click.echo(f"all runs; Ctrl-C ends it. Data and logs are in {folder}", err=True)
        _wait(broker, running)


def _stop(running: Mapping[str, tuple[Child, Path]]) -> None:
    stop([child for child, _ in running.values()], STOP_SECONDS)


def _port(loaded: Configuration) -> int:
    """Return the port on this machine that the file names; DevError if it names another Kafka."""
    (host, port), *others = loaded.cluster.addresses()
    if others or not is_loopback(host) or loaded.cluster.security is not None:
        raise DevError(
            f"{loaded.path} names a Kafka of its own ({loaded.kafka.bootstrap_servers}): dev runs one on "
            "this machine alone, unsecured, such as at 127.0.0.1:9092; leave out the section kafka"
        )
    return port


def _require_free(port: int, others: Mapping[str, int], file: Path) -> None:
    """Check ports before anything starts.

    Parameters
    ----------
    port : Kafka's.
    others : those that options name, by the option's first word, 0 for a free one.
    file : that names Kafka's.

    Raises
    ------
    DevError if one is in use; WrongUseError if two are the same.
    """
    taken = {port: "Kafka's port"}
    for name, number in others.items():
        if number in taken:
            raise WrongUseError(
                f"--{name}-port must not be {taken[number]}, got {number} for both; 0 takes a free one"
            )
        if number:
            taken[number] = f"--{name}-port"
    at_another = 'kafka: {bootstrap_servers: "127.0.0.1:9192"}'
    _check_free(port, "Kafka", f"name another port in {file}, such as {at_another}")
    for name, number in others.items():
        whose, what = {"web": ("worker", "page"), "edge": ("edge", "edge")}[name]
        remedy = f"give the {what} another port: --{name}-port {number + 1}, or 0 for a free one"
        _check_free(number, whose, remedy)


def _check_free(port: int, whose: str, remedy: str) -> None:
    try:
        if port:
            require_free(port)
    except BrokerError as error:
        why = str(error).partition(";")[0]
        raise DevError(f"{why}: is another {whose} or deniable dev running? Stop it, or {remedy}") from None


def _wait(broker: Broker, running: Mapping[str, tuple[Child, Path]]) -> None:
    """Wait until one of them ends by itself, then raise."""
    while True:
        for name, (child, log) in running.items():
            if child.poll() is not None:
                what = f"the {name} {_ended(child.returncode)}; start deniable dev again to go on"
                raise TrialWorkerError(ending(what, log))
        if broker.child is None or broker.child.poll() is not None:
            broker.wait()  # raises, with the end of its log
        time.sleep(STEP_SECONDS)


def _ended(status: int) -> str:
    """How a child ended: by a signal if its status is negative."""
    return f"was ended by signal {-status}" if status < 0 else f"ended by itself with status {status}"

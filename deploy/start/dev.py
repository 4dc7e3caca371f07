"""`deniable dev`: broker, topics and one worker, until Ctrl-C."""

import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import click

from deploy.broker.broker import Broker
from deploy.broker.child_processes import Child, last_lines, stop
from deploy.broker.errors import BrokerError
from deploy.broker.ports import require_free
from deploy.cli.options import Folder, config_option
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import Configuration, load
from deploy.start.edited_file import accept, publish
from deploy.start.trial_folder import WORKER_LOG, empty, refuse_second
from deploy.start.trial_worker import STEP_SECONDS, TrialWorkerError, ready_page_of, start_worker
from estimators.errors import DeniableError
from producers.transport.cluster import is_loopback

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
    "--fresh",
    is_flag=True,
    help="First delete the data of former runs. Budgets stay spent: they are with the producer.",
)
def dev(config: Path, data_dir: Path | None, web_port: int, fresh: bool) -> None:
    """Run Kafka, the topics and a worker with its page on this machine, until Ctrl-C.

    The broker listens where the collection file says, 127.0.0.1:9092 by default, so all other commands work
    beside it. Its data stay for the next run. After an edit of the file, start it again: it ends collections
    that are gone or defined differently, and says so. Elsewhere that takes deniable retire.

    Example: deniable dev
    """
    loaded = load(config)
    port = _port(loaded)
    folder = data_dir or config.parent / FOLDER
    refuse_second(folder)
    _require_free(port, web_port, loaded.path)
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
        stack.callback(stop, [worker], STOP_SECONDS)
        page = ready_page_of(worker, log)
        publish(deployment)
        click.echo(f"Kafka: {broker.bootstrap_servers}\npage:  {page}")
        click.echo(f"all runs; Ctrl-C ends it. Data and logs are in {folder}", err=True)
        _wait(broker, worker, log)


def _port(loaded: Configuration) -> int:
    """Return the port on this machine that the file names; DevError if it names another Kafka."""
    (host, port), *others = loaded.cluster.addresses()
    if others or not is_loopback(host) or loaded.cluster.security is not None:
        raise DevError(
            f"{loaded.path} names a Kafka of its own ({loaded.kafka.bootstrap_servers}): dev runs one on "
            "this machine alone, unsecured, such as at 127.0.0.1:9092; leave out the section kafka"
        )
    return port


def _require_free(port: int, web_port: int, file: Path) -> None:
    """Check both ports before anything starts; DevError if one is in use, or both are the same."""
    if port == web_port:
        raise DevError(f"--web-port must not be Kafka's port, got {port} for both; 0 takes a free one")
    remedies = {
        port: f'name another port in {file}, such as kafka: {{bootstrap_servers: "127.0.0.1:9192"}}',
        web_port: f"give the page another port: --web-port {web_port + 1}, or 0 for a free one",
    }
    for number, remedy in remedies.items():
        try:
            if number:
                require_free(number)
        except BrokerError as error:
            whose = "Kafka" if number == port else "worker"
            why = str(error).partition(";")[0]
            raise DevError(
                f"{why}: is another {whose} or deniable dev running? Stop it, or {remedy}"
            ) from None


def _wait(broker: Broker, worker: Child, log: Path) -> None:
    """Wait until one of them ends by itself, then raise."""
    while True:
        if worker.poll() is not None:
            raise TrialWorkerError(f"the worker ended by itself; the end of {log}:\n{last_lines(log)}")
        if broker.child is None or broker.child.poll() is not None:
            broker.wait()  # raises, with the end of its log
        time.sleep(STEP_SECONDS)

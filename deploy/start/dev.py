"""`deniable dev`: broker, topics and one worker, until Ctrl-C."""

import sys
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import click

from deploy.broker.broker import Broker
from deploy.broker.child_processes import Child, last_lines, spawn, stop
from deploy.broker.errors import BrokerError
from deploy.broker.ports import require_free
from deploy.cli.options import Folder, config_option
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import Configuration, load
from estimators.errors import DeniableError
from producers.transport.cluster import is_loopback

FOLDER = ".deniable-dev"
WORKER_LOG = "worker.log"
START_SECONDS = 60.0
STEP_SECONDS = 0.1
STOP_SECONDS = 20.0

# Of the extra `worker`: look before Kafka is started, without loading them.
for _module in ("aiohttp", "scipy"):
    if find_spec(_module) is None:
        raise ModuleNotFoundError(f"No module named {_module!r}", name=_module)


class DevError(DeniableError, RuntimeError):
    """Something that `deniable dev` runs cannot start or has ended; the message says what to do."""


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
def dev(config: Path, data_dir: Path | None, web_port: int) -> None:
    """Run Kafka, the topics and a worker with its page on this machine, until Ctrl-C.

    The broker listens where the collection file says, 127.0.0.1:9092 by default, so all other commands work
    beside it. Its data stay for the next run. After an edit of the file, start it again.

    Example: deniable dev
    """
    loaded = load(config)
    port = _port(loaded)
    folder = data_dir or config.parent / FOLDER
    with ExitStack() as stack:
        click.echo("starting Kafka …", err=True)
        broker = stack.enter_context(Broker(folder, port))
        if topic_setup.create(loaded.cluster, loaded.topics, loaded.kafka.replication_factor):
            click.echo("created the topics", err=True)
        click.echo("starting a worker …", err=True)
        log = folder / WORKER_LOG
        worker = _start_worker(config, log, web_port)
        stack.callback(stop, [worker], STOP_SECONDS)
        page = _page_of(worker, log)
        click.echo(f"Kafka: {broker.bootstrap_servers}\npage:  {page}")
        click.echo(f"all runs; Ctrl-C ends it. Data and logs are in {folder}", err=True)
        _wait(broker, worker, log)


def _port(loaded: Configuration) -> int:
    """Return the port on this machine that the file names.

    Raises
    ------
    DevError if the file names another machine or a secured Kafka, or if the port is in use.
    """
    (host, port), *others = loaded.cluster.addresses()
    if others or not is_loopback(host) or loaded.cluster.security is not None:
        raise DevError(
            f"{loaded.path} names a Kafka of its own ({loaded.kafka.bootstrap_servers}): dev runs one on "
            "this machine alone, unsecured, such as at 127.0.0.1:9092; leave out the section kafka"
        )
    try:
        require_free(port)
    except BrokerError as error:
        why = str(error).partition(";")[0]
        raise DevError(
            f"{why}: is another Kafka or deniable dev running? Stop it, or name another port in "
            f'{loaded.path}, such as kafka: {{bootstrap_servers: "127.0.0.1:9192"}}'
        ) from None
    return port


def _start_worker(config: Path, log: Path, web_port: int) -> Child:
    log.write_text("")
    command = [
        sys.executable,
        "-m",
        "deploy",
        "aggregate",
        "--config",
        str(config),
        "--web-port",
        str(web_port),
    ]
    return spawn(command, log)


def _page_of(worker: Child, log: Path) -> str:
    """Wait until the worker prints the address of its page."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and worker.poll() is None:
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("page: "):
                return line.removeprefix("page: ")
        time.sleep(STEP_SECONDS)
    raise DevError(f"the worker did not start; the end of {log}:\n{last_lines(log)}")


def _wait(broker: Broker, worker: Child, log: Path) -> None:
    """Wait until one of them ends by itself, then raise."""
    while True:
        if worker.poll() is not None:
            raise DevError(f"the worker ended by itself; the end of {log}:\n{last_lines(log)}")
        if broker.child is None or broker.child.poll() is not None:
            broker.wait()  # raises, with the end of its log
        time.sleep(STEP_SECONDS)

"""One broker a run with several processes: the one that distributes the tests starts it, and all use it.

The secured broker is not passed on, since tests change its users and certificates: its files run in one
process. So do those of the browser, which takes a second to start.
"""

import re
from contextlib import ExitStack
from functools import cache

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

from deniable.deploy.broker import ports
from deniable.deploy.broker.errors import ToolMissingError
from tests.support.brokers.choice import choice_of, started
from tests.support.paths import REPOSITORY

LONGEST = ("all", "broker", "browser", "slow")  # marks, those of the longest tests first
#: What a file of one process has in its text: the fixture of what its tests share.
SHARED = {
    "secured broker": re.compile(r"secured_broker"),
    "browser": re.compile(r"def \w+\([^)]*\b(?:browser|tab)\b"),
}


def pytest_configure(config: pytest.Config) -> None:
    """Start the broker that `--bootstrap-servers` passes to the processes of a run, unless one is given."""
    if hasattr(config, "workerinput"):
        config.option.bootstrap_servers = config.workerinput["bootstrap_servers"]
        _draw_own_ports(
            int(config.workerinput["workerid"].removeprefix("gw")), config.workerinput["workercount"]
        )
        return
    distributes = config.getoption("numprocesses", None)
    if not distributes or "not broker" in config.option.markexpr or choice_of(config).kind == "given":
        return
    stack = ExitStack()
    try:
        config.option.bootstrap_servers = stack.enter_context(started(choice_of(config)))
    except ToolMissingError:
        return  # the fixture skips the tests with the reason
    config.add_cleanup(stack.close)


def _draw_own_ports(process: int, processes: int) -> None:
    """Let a process draw from a part of the ports: between drawing and listening another may take one."""
    width = (ports.HIGHEST_PORT - ports.LOWEST_PORT) // processes
    ports.LOWEST_PORT += process * width
    ports.HIGHEST_PORT = ports.LOWEST_PORT + width


@pytest.hookimpl(optionalhook=True)  # pytest -p no:xdist has none
def pytest_configure_node(node: WorkerController) -> None:
    """Pass the broker on: xdist gives its processes the command line, not the options as set above."""
    node.workerinput["bootstrap_servers"] = node.config.option.bootstrap_servers


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that have the longest tests, so that all processes end at about the same time."""
    if not hasattr(config, "workerinput"):
        return
    ranks = {item.path: len(LONGEST) for item in items}
    for item in items:
        mine = [rank for rank, mark in enumerate(LONGEST) if item.get_closest_marker(mark)]
        ranks[item.path] = min([ranks[item.path], *mine])
    items.sort(key=lambda item: ranks[item.path])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    return _Scheduling(config, log)


class _Scheduling(LoadFileScheduling):
    """A file in one process, and all files of the secured broker, or of the browser, in one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return _shared_by(file) or file


@cache
def _shared_by(file: str) -> str | None:
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    return next((shared for shared, fixture in SHARED.items() if fixture.search(text)), None)

"""A worker raises its limit of open files; at the limit, it says that and does not blame Kafka."""

import resource
import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from deniable.deploy.services.open_files import BASE, allow_open_files, needed_files

AT_THE_LIMIT = """
import asyncio, os, resource, sys
from aiokafka.errors import NodeNotReadyError
from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage, why_unavailable
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
async def ask():
    files = []
    try:
        while True:
            files.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    return await why_unavailable(Cluster("127.0.0.1:9"), (), NodeNotReadyError())
print(asyncio.run(ask()))
"""


@pytest.fixture
def _limits() -> object:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("_limits")
def test_the_limit_is_raised_and_one_that_does_not_fit_is_named() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard))
    with capture_logs() as lines:
        allow_open_files(4, 3)
        assert lines == []
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        allow_open_files(hard, 3)
    assert [(each["needed"], each["allowed"]) for each in lines] == [(needed_files(hard, 3), hard)]
    assert needed_files(16, 3) == BASE + 16 * 7


@pytest.mark.slow
def test_a_process_at_its_limit_says_so_and_blames_no_broker() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", AT_THE_LIMIT], capture_output=True, text=True, timeout=60, check=True
    )
    assert "this process may open no more files (its limit is 64)" in ended.stdout

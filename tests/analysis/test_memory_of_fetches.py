"""Memory of one fetch is used again for the next one, without a page fault."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from analysis.sources.topic import keep_memory_of_fetches
if "kept" in sys.argv:
    keep_memory_of_fetches()
def fetch():
    for _ in range(50):
        answer = bytes(4 << 20)
        partitions = [answer[start:start + (1 << 20)] for start in range(0, len(answer), 1 << 20)]
        records = [each[start:start + 14_000] for each in partitions for start in range(0, 1 << 20, 14_000)]
fetch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
fetch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*arguments: str) -> int:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return int(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other settings")
def test_memory_of_a_fetch_is_used_again() -> None:
    assert faults("kept") < 1000 < faults()

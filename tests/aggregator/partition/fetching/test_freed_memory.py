"""Memory of one fetch is used again for the next one, in any thread, without a page fault."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys, threading
import numpy as np
from deniable.aggregator.partition.fetching.freed_memory import keep_freed_memory
if "kept" in sys.argv and not keep_freed_memory():
    sys.exit("no mallopt")
def fetch():
    for _ in range(50):
        parts = [np.ones(300_000, np.uint8) for _ in range(20)]
fetch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
other = threading.Thread(target=fetch)
other.start()
other.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*arguments: str) -> int:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=60
    )
    if "no mallopt" in ended.stderr:
        pytest.skip("this C library has no mallopt")
    return int(ended.stdout)


@pytest.mark.slow
def test_memory_of_a_fetch_is_used_again_by_another_thread() -> None:
    assert faults("kept") < 1000 < faults("default")

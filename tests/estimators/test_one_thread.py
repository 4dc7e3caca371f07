"""Figures of a roll-up are the same whatever number of threads OpenBLAS has outside of it."""

import os
import subprocess
import sys
from threading import Event, Thread

import pytest

from deniable.estimators.rollup import one_thread
from deniable.estimators.rollup.one_thread import one_blas_thread

#: Prints the number of threads, and the record of a roll-up of 400 candidates.
ROLL_UP = """
from dataclasses import replace
import msgspec, numpy as np
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import coverage_of, record_of, roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.rollup.one_thread import _libraries
from tests.support.aggregator.builders import PLACE, T0

mechanism = Rappor.from_probabilities(128, 2, 16, 0.25, 0.35, 0.65)
words = tuple(f"word-{i}" for i in range(400))
asked = replace(PLACE, mechanism=mechanism, candidates=words)
truth = np.arange(1, 401.0) ** -1
held = (bloom_design(words, mechanism) @ (truth / truth.sum())).reshape(16, 128)
rates = mechanism.p_star + (mechanism.q_star - mechanism.p_star) * held
counts = np.random.default_rng(1).binomial(10_000, rates)
joined = Joined(WindowCounts(counts, np.full(16, 10_000), 1, 0), {T0: 160_000}, [], {}, 0)
coverage = coverage_of(asked, Period(T0, T0 + 10), joined)
threads = [each.get() for each in _libraries()]
record = record_of(asked, coverage, joined, roll_up(asked, joined), whole=True)
assert [each.get() for each in _libraries()] == threads, "the number of threads is restored"
print(threads)
print(msgspec.json.encode(record).decode())
"""


@pytest.mark.all
def test_figures_do_not_depend_on_threads() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("OpenBLAS uses no more threads than there are cores, here one")
    (one, figures), (two, of_two) = _rolled_up("1"), _rolled_up("2")
    assert (one, two) == ("[1, 1]", "[2, 2]"), "not the OpenBLAS of numpy's and scipy's wheels"
    assert figures == of_two


def _rolled_up(threads: str) -> list[str]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    ended = subprocess.run(
        [sys.executable, "-c", ROLL_UP], env=environment, capture_output=True, text=True, check=True
    )
    return ended.stdout.splitlines()


def test_last_call_to_end_restores_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [8]
    library = one_thread._Threads(lambda: numbers[-1], numbers.append)
    monkeypatch.setattr(one_thread, "_libraries", lambda: [library])
    inside, end = Event(), Event()

    @one_blas_thread()
    def other() -> None:
        inside.set()
        end.wait(10)

    thread = Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert inside.wait(10)
    assert numbers == [8, 1], "the other call still needs one thread"
    end.set()
    thread.join()
    with pytest.raises(ValueError, match="of the caller"), one_blas_thread():
        raise ValueError("of the caller")
    assert numbers == [8, 1, 8, 1, 8]

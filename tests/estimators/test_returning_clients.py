"""Roll-ups of clients that return in every window, where few responses are false."""

import numpy as np
import pytest

from bench.estimators.conditional.fixed_clients import ONE
from bench.estimators.conditional.judging import Run
from bench.estimators.conditional.kinds import KINDS
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.rollup.matrix import roll_up_krr


def missed_by(run: Run, runs: int) -> dict[str, float]:
    """Return the mean missed by each figure."""
    rng = np.random.default_rng(3)
    measured = [run(rng) for _ in range(runs)]
    return {name: float(np.mean([each[name].missed for each in measured])) for name in measured[0]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "epsilon"), [("roll-up k-rr-longitudinal", 8.0), ("roll-up rappor-one-hot", 8.0)]
)
def test_what_one_client_repeats_is_no_discovery(kind: str, epsilon: float) -> None:
    """1,000 reports of 250 clients, who all hold one value.

    20 runs with a fixed seed. Defect caught: by a normal tail, 55 % of the runs had false discoveries, and
    intervals of all values missed one of them.
    """
    chosen = KINDS[kind]
    missed = missed_by(chosen.run(chosen.mechanism(epsilon), ONE, 1_000), 20)
    assert missed["discoveries"] <= 0.05
    assert missed["all at once"] <= 0.05
    assert missed["share"] <= 0.05


def test_steps_are_the_windows_of_a_client() -> None:
    """Windows of unequal sizes: 12 reports of one bucket may be those of one client.

    Defect caught: steps of the mean overlap, 2.2, of which 12 are too many.
    """
    mechanism = LongitudinalKRR.from_epsilons(40, 9.0, 8.9)
    counts = np.zeros(40, np.int64)
    counts[:2] = 10_000, 12
    unequal = roll_up_krr(counts, np.array([9001, *[91] * 11, 10]), mechanism)
    assert unequal.independent.significant[1]
    assert not unequal.shared.significant[1]

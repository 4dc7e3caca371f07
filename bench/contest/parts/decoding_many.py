"""RAPPOR decoding of as many candidates as a list of words has, in a process that starts cold."""

from pathlib import Path

from bench.aggregator_results import Row
from bench.contest.contestant import Contestant
from bench.contest.figure import Figure, absolute
from bench.contest.parts import decoding_errors
from bench.contest.parts.client import MILDER
from bench.contest.parts.decoders import Timed, beside, cross_validated, ours, penalized, time
from bench.contest.parts.rappor_windows import Windows, build
from bench.contest.rounds import Scale

QUICK_CANDIDATES, FULL_CANDIDATES = 5_000, 100_000
COHORTS = 64
GOAL_SECONDS = 60.0
GOAL_MIB = 2048.0


def measure(folder: Path, sklearn: Contestant, scale: Scale) -> tuple[list[Figure], list[Row], str]:
    """One window; the quick run takes a tenth of the candidates."""
    windows = build(folder, QUICK_CANDIDATES if scale.quick else FULL_CANDIDATES, COHORTS, MILDER)
    with Contestant("estimation_runner") as mine:
        decoder = ours(mine, windows)
        answer, seconds = decoder.decode(windows, 0)
        goals = [
            absolute(f"Decoding {windows.name}: cold process, time", "s passed", seconds, GOAL_SECONDS),
            absolute(
                f"Decoding {windows.name}: cold process, memory", "MiB at most", answer["peak_mib"], GOAL_MIB
            ),
        ]
        # It may take minutes, so that it is asked but once.
        chosen = time([cross_validated(sklearn, windows)], windows, scale)
        known = penalized(sklearn, windows, alpha=chosen[0].answer["alpha"])
        first, last = time([decoder, known], windows, scale)
        rows = _rows(windows, [first, *chosen, last])
    return [*goals, *beside(windows, [first, *chosen, last])], rows, _told(scale)


def _rows(windows: Windows, timed: list[Timed]) -> list[Row]:
    return [decoding_errors.row(windows, each) for each in decoding_errors.judge(timed, windows, 1)]


def _told(scale: Scale) -> str:
    rows = COHORTS * 128
    gigabytes = rows * FULL_CANDIDATES * 8 / 1e9
    quick = f" This quick run takes {QUICK_CANDIDATES:,} candidates." if scale.quick else ""
    return (
        "scipy's nnls takes dense matrices alone: that of 64 cohorts of 128 bits and 100,000 candidates is "
        f"{rows:,} x {FULL_CANDIDATES:,} x 8 bytes = {gigabytes:.1f} GB, beyond our goal of 2 GiB, so it was "
        "not run. Lasso takes sparse ones. A cold process hashes all candidates first, what a worker does "
        f"once.{quick}"
    )

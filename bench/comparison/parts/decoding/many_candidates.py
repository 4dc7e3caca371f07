"""RAPPOR decoding with as many candidates as a word list has, in a fresh process."""

from pathlib import Path

from bench.comparison.parts.client import MILDER
from bench.comparison.parts.decoding import decoding_errors
from bench.comparison.parts.decoding.decoders import (
    Compared,
    Timed,
    beside,
    cross_validated,
    ours,
    penalized,
    time,
)
from bench.comparison.parts.decoding.rappor_windows import Windows, build
from bench.comparison.report.figure import absolute
from bench.comparison.timing.contestant import Contestant, ContestantError
from bench.comparison.timing.rounds import Scale

QUICK_CANDIDATES, FULL_CANDIDATES = 5_000, 100_000
COHORTS = 64
GOAL_SECONDS = 60.0
GOAL_MIB = 2048.0


def measure(folder: Path, sklearn: Contestant, scale: Scale) -> Compared:
    """Measure one window; the quick run uses a twentieth of the candidates."""
    windows = build(folder, QUICK_CANDIDATES if scale.quick else FULL_CANDIDATES, COHORTS, MILDER)
    with Contestant("ours.estimation_runner") as mine:
        decoder = ours(mine, windows)
        answer, seconds = decoder.decode(windows, 0)
        goals = [
            absolute(f"Decoding {windows.name}: first of a process, time", "s passed", seconds, GOAL_SECONDS),
            absolute(
                f"Decoding {windows.name}: first of a process, memory",
                "MiB at most",
                answer["peak_mib"],
                GOAL_MIB,
            ),
        ]
        chosen, failed = _chosen(sklearn, windows, scale)
        known = [penalized(sklearn, windows, alpha=each.answer["alpha"]) for each in chosen]
        try:
            first, *last = time([decoder, *known], windows, scale)
        except ContestantError as error:
            (first,), last = time([decoder], windows, scale), []
            failed.append(f"Lasso is not compared with {windows.name}: {error}.")
        timed = [first, *chosen, *last]
        rows = [decoding_errors.row(windows, each) for each in decoding_errors.judge(timed, windows, 1)]
    return Compared([*goals, *beside(windows, timed)], rows, [_note(scale), *failed])


def _chosen(sklearn: Contestant, windows: Windows, scale: Scale) -> tuple[list[Timed], list[str]]:
    """LassoCV, run only once because it may take minutes; or a note with the reason why it is missing."""
    try:
        return time([cross_validated(sklearn, windows)], windows, scale), []
    except ContestantError as error:
        return [], [f"scikit-learn is not compared with {windows.name}: {error}."]


def _note(scale: Scale) -> str:
    rows = COHORTS * 128
    gigabytes = rows * FULL_CANDIDATES * 8 / 1e9
    quick = f" This quick run takes {QUICK_CANDIDATES:,} candidates." if scale.quick else ""
    return (
        "scipy's nnls takes dense matrices alone: that of 64 cohorts of 128 bits and 100,000 candidates is "
        f"{rows:,} x {FULL_CANDIDATES:,} x 8 bytes = {gigabytes:.1f} GB, beyond our goal of 2 GiB, so it was "
        "not run. Lasso takes sparse ones. The first decoding of a process hashes all candidates, as a "
        "worker does once; its time is without the start of Python, its memory is of the whole process. "
        f"The others have them hashed.{quick}"
    )

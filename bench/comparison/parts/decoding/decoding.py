"""RAPPOR decoding compared with SciPy's nnls and scikit-learn's Lasso: time and errors."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.comparison.parts.client import ASKED, MILDER
from bench.comparison.parts.decoding import decoding_errors, many_candidates
from bench.comparison.parts.decoding.decoders import (
    Compared,
    Decoder,
    beside,
    cross_validated,
    least_squares,
    ours,
    penalized,
    time,
    tried,
)
from bench.comparison.parts.decoding.rappor_windows import Windows, build
from bench.comparison.peer_environment import PYTHON
from bench.comparison.report.figure import ResultsPart, Table, absolute
from bench.comparison.timing.contestant import Contestant, ContestantError
from bench.comparison.timing.rounds import Scale

CANDIDATES = 300
COHORTS = 8
GOAL_MILLISECONDS = 50.0
QUICK_WINDOWS, FULL_WINDOWS = 3, 20
ABOUT = (
    "RAPPOR: windows of 1,000,000 reports, 128 bits, 2 hashes; 100 candidates hold all mass (Zipf, exponent "
    "1), the others are decoys. Peers get what a user would give them: the matrix of the candidates' bits, "
    "made beforehand on all sides but for the first of a process, and the debiased share of each bit; "
    "coefficients that are not negative, and no intercept, which suits them best. Lasso gets a sparse "
    "matrix, the faster way, and nnls a dense one, the only way."
)
NOTES = (
    "Peers give no error bars, and do not say which candidates are present: all of theirs above 0 count as "
    "reported. Ours are those significant at a false discovery rate of 5 %. Above 0 are about as many decoys "
    "in our point estimate as in theirs, where none is screened out.",
    "`held beside as many decoys` leaves that difference aside: held candidates whose share is above the "
    "least threshold that passes no more decoys than ours reported. The threshold requires knowing the "
    "truth. Where the figures agree, all rank candidates alike, and ours adds where to stop.",
    "Total variation: shares that sum to more than 1 are scaled down to 1; mass missing to 1 counts as "
    "another value.",
    "Lasso with a penalty that is known beforehand is faster than our decoding: it is one fit. Ours are two, "
    "the likeliest shares, with a proof of their gap, and least squares with their covariance.",
)


def measure(scale: Scale) -> ResultsPart:
    """Measure 300 candidates in two settings, and many candidates."""
    peer = str(PYTHON)
    with (
        TemporaryDirectory() as name,
        Contestant("ours.estimation_runner") as mine,
        Contestant("peers.scipy_runner", peer) as scipy,
        Contestant("peers.sklearn_runner", peer) as sklearn,
    ):
        few = [build(Path(name), CANDIDATES, COHORTS, each) for each in (ASKED, MILDER)]
        compared = [_few(each, mine, scipy, sklearn, scale) for each in few]
        compared.append(many_candidates.measure(Path(name), sklearn, scale))
    tables = [
        Table("RAPPOR decoding, means of windows", [row for each in compared[:-1] for row in each.rows]),
        Table("RAPPOR decoding of many candidates", compared[-1].rows),
    ]
    figures = [figure for each in compared for figure in each.figures]
    return ResultsPart(
        "Decoding", ABOUT, figures, tables, [*NOTES, *(note for each in compared for note in each.notes)]
    )


def _few(
    windows: Windows, mine: Contestant, scipy: Contestant, sklearn: Contestant, scale: Scale
) -> Compared:
    choosing = cross_validated(sklearn, windows)
    answers, failed = tried([least_squares(scipy, windows), choosing], windows)
    peers = list(answers)
    if choosing in answers:
        peers.append(penalized(sklearn, windows, alpha=answers[choosing]["alpha"]))
    try:
        return _compared([ours(mine, windows), *peers], windows, scale, failed)
    except ContestantError as error:
        failed.append(f"Peers are not compared with {windows.name}: {error}.")
        return _compared([ours(mine, windows)], windows, scale, failed)


def _compared(decoders: Sequence[Decoder], windows: Windows, scale: Scale, notes: Sequence[str]) -> Compared:
    timed = time(decoders, windows, scale)
    judged = decoding_errors.judge(timed, windows, QUICK_WINDOWS if scale.quick else FULL_WINDOWS)
    goal = absolute(f"Decoding {windows.name}: time", "ms", timed[0].milliseconds, GOAL_MILLISECONDS)
    figures = [goal, *beside(windows, timed), *decoding_errors.figures(windows, judged)]
    return Compared(figures, [decoding_errors.row(windows, each) for each in judged], notes)

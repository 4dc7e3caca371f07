"""RAPPOR decoding compared with SciPy's nnls and scikit-learn's Lasso: time and errors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypedDict, cast

import numpy as np

from bench.comparison.decoding.decoded import Decoding, held_above, scores
from bench.comparison.decoding.rappor_windows import Windows, build
from bench.comparison.timing.contestant import Contestant, ContestantError, opened
from bench.comparison.timing.rounds import Job, Timed, timed
from bench.sections import ResultRow, Section, shown

ASKED = {"f": 0.5, "p": 0.5, "q": 0.75}
MILDER = {"f": 0.25, "p": 0.35, "q": 0.65}
CANDIDATES, COHORTS, WINDOWS = 300, 8, 20
MANY_CANDIDATES, MANY_COHORTS = 100_000, 64
GOAL_MILLISECONDS, MANY_GOAL_SECONDS, MANY_GOAL_MIB = 50.0, 60.0, 2048.0
ABOUT = """\
RAPPOR: windows of 1,000,000 reports, 128 bits, 2 hashes; 100 candidates hold all mass (Zipf, exponent 1),
the others are decoys. Peers get what a user would give them: the matrix of the candidates' bits, made
beforehand on all sides, and the debiased share of each bit; coefficients that are not negative, and no
intercept, which suits them best. Lasso gets a sparse matrix, the faster way, and nnls a dense one, the
only way. Processor time of one core, in turn.

- Peers give no error bars, and do not say which candidates are present: all of theirs above 0 count as
  reported. Ours are those significant at a false discovery rate of 5 %.
- `held beside as many decoys` leaves that difference aside: held candidates whose share is above the
  least threshold that passes no more decoys than ours reported. The threshold requires knowing the truth.
  Where the figures agree, all rank candidates alike, and ours adds where to stop.
- Total variation: shares that sum to more than 1 are scaled down to 1; mass missing to 1 counts as
  another value.
- Lasso with a penalty that is known beforehand is faster than our decoding: it is one fit. Ours are two,
  the likeliest shares, with a proof of their gap, and least squares with their covariance."""
MANY = """\
As many candidates as a word list has. The first decoding of a process hashes all of them, as a worker
does once; its time is without the start of Python, its memory is of the whole process. The table's have
them hashed. scipy's nnls takes dense matrices alone: this one is 6.6 GB, so it was not run."""


class DecoderAnswer(TypedDict, total=False):
    """A runner's answer for a window; `shares` is always present.

    Ours adds `reported`, the present candidates, and `peak_mib`, its peak memory; LassoCV adds `alpha`.
    """

    shares: list[float]
    reported: list[bool]
    peak_mib: float
    alpha: float


class Decoder(NamedTuple):
    """A contestant's job without the window; `who` and `says` as in the results."""

    contestant: Contestant
    name: str
    parameters: Mapping[str, object]
    who: str
    says: str

    def job(self, windows: Windows, number: int) -> Job:
        """The job for one window."""
        asked = {**self.parameters, "window": windows.window(number)}
        return Job(self.contestant, self.name, asked, self.says)

    def decode(self, windows: Windows, number: int) -> tuple[DecoderAnswer, float]:
        """Decode one window once; return the answer and wall time, seconds."""
        job = self.job(windows, number)
        self.contestant.prepare(job.name, 1, **job.parameters)
        timing = self.contestant.run()
        return cast("DecoderAnswer", timing.result), timing.seconds


def decoding() -> Section:
    """Measure 300 candidates in two settings."""
    runners = ("ours.estimation_runner", "peers.scipy_runner", "peers.sklearn_runner")
    rows: list[ResultRow] = []
    missed: list[str] = []
    with TemporaryDirectory() as name, opened(*runners) as (mine, scipy, sklearn):
        for probabilities in (ASKED, MILDER):
            windows = build(Path(name), CANDIDATES, COHORTS, probabilities)
            squares = Decoder(scipy, "decode", {"design": windows.design}, "scipy nnls", "no error bars")
            found = compared(windows, mine, [squares, *lassos(sklearn, windows)], WINDOWS)
            rows += found
            if float(found[0]["ms"]) > GOAL_MILLISECONDS:
                missed.append(f"{windows.name}: {shown(found[0]['ms'])} ms, of {GOAL_MILLISECONDS:g} asked")
    return Section(ABOUT, rows, missed=missed)


def decoding_of_many() -> Section:
    """Measure one window of 100,000 candidates, in a fresh process."""
    with (
        TemporaryDirectory() as name,
        opened("ours.estimation_runner", "peers.sklearn_runner") as opened_ones,
    ):
        mine, sklearn = opened_ones
        windows = build(Path(name), MANY_CANDIDATES, MANY_COHORTS, MILDER)
        answer, seconds = ours(mine, windows).decode(windows, 0)
        rows = compared(windows, mine, lassos(sklearn, windows), 1)
    memory = answer["peak_mib"]
    below = f"The first of a process: {shown(seconds)} s and {shown(memory)} MiB."
    is_missed = seconds > MANY_GOAL_SECONDS or memory > MANY_GOAL_MIB
    goal = f"{MANY_GOAL_SECONDS:g} s and {MANY_GOAL_MIB:g} MiB asked of the first of a process"
    return Section(MANY, rows, below, [goal] if is_missed else [])


def ours(contestant: Contestant, windows: Windows) -> Decoder:
    """Our decoder."""
    mechanism = windows.mechanism
    asked = {"words": windows.words, "bits": mechanism.bits, "hashes": mechanism.hashes}
    asked |= {"cohorts": mechanism.cohorts, **windows.probabilities}
    return Decoder(contestant, "decode", asked, "deniable", "with errors, intervals, significance")


def lassos(contestant: Contestant, windows: Windows) -> list[Decoder]:
    """Lasso with a penalty by cross-validation, and with that one known beforehand, if the first works."""
    asked: Mapping[str, object] = {"design": windows.design}
    choosing = Decoder(contestant, "LassoCV", asked, "scikit-learn LassoCV", "no error bars")
    try:
        alpha = choosing.decode(windows, 0)[0]["alpha"]
    except ContestantError:
        return [choosing]  # whose row has the reason
    says = f"alpha {alpha:.2g} given, LassoCV's; no error bars"
    return [
        choosing,
        Decoder(contestant, "Lasso", {**asked, "alpha": alpha}, "scikit-learn Lasso", says),
    ]


def compared(windows: Windows, mine: Contestant, peers: Sequence[Decoder], count: int) -> list[ResultRow]:
    """Time all on the first window and score them on so many; ContestantError if ours fails."""
    decoders = [ours(mine, windows), *peers]
    times = timed([each.job(windows, 0) for each in decoders])
    if times[0].failed:
        raise ContestantError(times[0].failed)
    found: list[list[Decoding]] = []
    for place, (decoder, time) in enumerate(zip(decoders, times, strict=True)):
        try:
            found.append([] if time.failed else _decodings(decoder, time, windows, count))
        except ContestantError as error:
            times[place] = Timed(time.job, [], str(error))
            found.append([])
    allowed = [scores(each, windows.truth).decoys_reported for each in found[0]]
    return [_row(windows, *each, allowed) for each in zip(decoders, times, found, strict=True)]


def _decodings(decoder: Decoder, time: Timed, windows: Windows, count: int) -> list[Decoding]:
    first = cast("DecoderAnswer", time.result)
    answers = [first, *(decoder.decode(windows, number)[0] for number in range(1, count))]
    return [_decoding(answer) for answer in answers]


def _decoding(answer: DecoderAnswer) -> Decoding:
    """Without `reported`, all candidates with a share above 0 count as present."""
    shares = np.array(answer["shares"])
    return Decoding(shares, np.array(answer["reported"]) if "reported" in answer else shares > 0)


def _row(
    windows: Windows, decoder: Decoder, time: Timed, found: list[Decoding], allowed: list[float]
) -> ResultRow:
    names = ("total variation", "held reported", "decoys reported", "held above 0", "decoys above 0")
    means: dict[str, float | str] = dict.fromkeys([*names, "held beside as many decoys"], "")
    if found:
        means = dict(
            zip(names, np.mean([scores(each, windows.truth) for each in found], axis=0), strict=True)
        )
        pairs = zip(found, allowed, strict=True)
        beside = [held_above(each.shares, windows.truth, int(decoys)) for each, decoys in pairs]
        means["held beside as many decoys"] = float(np.mean(beside))
    return {
        "windows of": windows.name,
        "by": f"{decoder.who} {decoder.contestant.version}",
        "ms": time.cpu_seconds * 1000 if found else "",
        "windows": len(found),
        **means,
        "does": time.failed or decoder.says,
    }


CASES = {"decoding": decoding, "decoding of many candidates": decoding_of_many}

"""Decoders of RAPPOR windows: their jobs, and their time for one window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, cast

from bench.aggregator.results import ResultRow
from bench.comparison.parts.decoding.rappor_windows import Windows
from bench.comparison.report.figure import Figure
from bench.comparison.timing.contestant import Contestant, ContestantError
from bench.comparison.timing.rounds import Job, Scale
from bench.comparison.timing.timings import Time, times


class DecoderAnswer(TypedDict, total=False):
    """A runner's answer for a window; `shares` is always present.

    Ours adds `reported`, the present candidates, and `peak_mib`, its peak memory; LassoCV adds `alpha`.
    """

    shares: list[float]
    reported: list[bool]
    peak_mib: float
    alpha: float


@dataclass(frozen=True, eq=False)
class Decoder:
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


class Timed(NamedTuple):
    """A decoder, and its time for the first window."""

    decoder: Decoder
    time: Time

    @property
    def milliseconds(self) -> float:
        """Processor time, milliseconds."""
        return self.time.cpu_seconds * 1000

    @property
    def answer(self) -> DecoderAnswer:
        """The answer for the first window."""
        return cast("DecoderAnswer", self.time.result)


class Compared(NamedTuple):
    """Results of one setting: figures, a row for each decoder, and notes."""

    figures: Sequence[Figure]
    rows: Sequence[ResultRow]
    notes: Sequence[str]


def ours(contestant: Contestant, windows: Windows) -> Decoder:
    """Our decoder."""
    mechanism = windows.mechanism
    asked = {"words": windows.words, "bits": mechanism.bits, "hashes": mechanism.hashes}
    asked |= {"cohorts": mechanism.cohorts, **windows.probabilities}
    return Decoder(contestant, "decode", asked, "deniable", "with errors, intervals, significance")


def least_squares(contestant: Contestant, windows: Windows) -> Decoder:
    """scipy.optimize.nnls."""
    return Decoder(contestant, "decode", {"design": windows.design}, "scipy nnls", "no error bars")


def cross_validated(contestant: Contestant, windows: Windows) -> Decoder:
    """sklearn.linear_model.LassoCV."""
    asked = {"design": windows.design}
    return Decoder(contestant, "LassoCV", asked, "scikit-learn LassoCV", "no error bars")


def penalized(contestant: Contestant, windows: Windows, alpha: float) -> Decoder:
    """sklearn.linear_model.Lasso."""
    asked = {"design": windows.design, "alpha": alpha}
    says = f"alpha {alpha:.2g} given, LassoCV's; no error bars"
    return Decoder(contestant, "Lasso", asked, "scikit-learn Lasso", says)


def tried(decoders: Sequence[Decoder], windows: Windows) -> tuple[dict[Decoder, DecoderAnswer], list[str]]:
    """Answers for the first window; for decoders that fail, a note with the reason."""
    answers: dict[Decoder, DecoderAnswer] = {}
    failed: list[str] = []
    for decoder in decoders:
        try:
            answers[decoder] = decoder.decode(windows, 0)[0]
        except ContestantError as error:
            failed.append(f"{decoder.who} is not compared with {windows.name}: {error}.")
    return answers, failed


def time(decoders: Sequence[Decoder], windows: Windows, scale: Scale) -> list[Timed]:
    """Time all decoders on the first window, interleaved."""
    found = times([decoder.job(windows, 0) for decoder in decoders], scale)
    return [Timed(decoder, each) for decoder, each in zip(decoders, found, strict=True)]


def beside(windows: Windows, timed: Sequence[Timed]) -> list[Figure]:
    """Figures that compare our time, the first, with each of the others."""
    mine, *others = timed
    return [
        Figure(
            f"Decoding {windows.name}: time beside {each.decoder.who}",
            "ms",
            mine.milliseconds,
            each.decoder.who,
            each.milliseconds,
        )
        for each in others
    ]

"""Those who decode RAPPOR windows: how each is asked, and how long it takes for one."""

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
    """What a runner says of a window: always `shares`.

    `reported`, what is present, and `peak_mib`, most memory of its process, by ours; `alpha` by LassoCV.
    """

    shares: list[float]
    reported: list[bool]
    peak_mib: float
    alpha: float


@dataclass(frozen=True, eq=False)
class Decoder:
    """A contestant's job, but for the window; `who` and `says` as in the results."""

    contestant: Contestant
    name: str
    parameters: Mapping[str, object]
    who: str
    says: str

    def job(self, windows: Windows, number: int) -> Job:
        """What it is told for one window."""
        asked = {**self.parameters, "window": windows.window(number)}
        return Job(self.contestant, self.name, asked, self.says)

    def decode(self, windows: Windows, number: int) -> tuple[DecoderAnswer, float]:
        """Decode one window once; seconds that passed."""
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
        """Of processor time."""
        return self.time.cpu_seconds * 1000

    @property
    def answer(self) -> DecoderAnswer:
        """What it said."""
        return cast("DecoderAnswer", self.time.result)


class Compared(NamedTuple):
    """What came out of one setting: figures, a row of each decoder, and notes."""

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
    """What each answers for the first window; and of those that fail, why they are not compared."""
    answers: dict[Decoder, DecoderAnswer] = {}
    failed: list[str] = []
    for decoder in decoders:
        try:
            answers[decoder] = decoder.decode(windows, 0)[0]
        except ContestantError as error:
            failed.append(f"{decoder.who} is not compared with {windows.name}: {error}.")
    return answers, failed


def time(decoders: Sequence[Decoder], windows: Windows, scale: Scale) -> list[Timed]:
    """Time each on the first window, in turn."""
    found = times([decoder.job(windows, 0) for decoder in decoders], scale)
    return [Timed(decoder, each) for decoder, each in zip(decoders, found, strict=True)]


def beside(windows: Windows, timed: Sequence[Timed]) -> list[Figure]:
    """Our time beside each other's; ours is the first."""
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

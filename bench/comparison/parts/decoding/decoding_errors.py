"""Errors of each decoder: means over several windows."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from bench.aggregator.results import ResultRow
from bench.comparison.parts.decoding.decoded import Decoding, Scores, held_above, scores
from bench.comparison.parts.decoding.decoders import DecoderAnswer, Timed
from bench.comparison.parts.decoding.rappor_windows import Windows
from bench.comparison.report.figure import Figure


@dataclass(frozen=True)
class ScoredDecoder:
    """A decoder's time, and means of its scores over several windows.

    `held_beside` is `held_above` with as many decoys as our decoder reported.
    """

    timed: Timed
    windows: int
    scores: Scores
    held_beside: float


def judge(timed: Sequence[Timed], windows: Windows, count: int) -> list[ScoredDecoder]:
    """Score each decoder on this many windows; ours is the first."""
    decoded = [_decodings(each, windows, count) for each in timed]
    allowed = [scores(mine, windows.truth).decoys_reported for mine in decoded[0]]
    return [
        ScoredDecoder(each, count, _mean(found, windows), _held_beside(found, allowed, windows))
        for each, found in zip(timed, decoded, strict=True)
    ]


def figures(windows: Windows, judged: Sequence[ScoredDecoder]) -> list[Figure]:
    """Figures that compare ours with the best peer for each score; none without peers."""
    mine, *others = judged
    if not others:
        return []
    nearest = min(others, key=lambda each: each.scores.variation)
    fewest = min(others, key=lambda each: each.scores.decoys_reported)
    # None is taken for one in all windows.
    decoys, theirs = (max(each.scores.decoys_reported, 1 / each.windows) for each in (mine, fewest))
    return [
        Figure(
            f"Decoding {windows.name}: error",
            "total variation",
            mine.scores.variation,
            nearest.timed.decoder.who,
            nearest.scores.variation,
        ),
        Figure(
            f"Decoding {windows.name}: decoys reported",
            "a window",
            decoys,
            fewest.timed.decoder.who,
            theirs,
        ),
    ]


def row(windows: Windows, judged: ScoredDecoder) -> ResultRow:
    """One line of the results' table."""
    found, decoder = judged.scores, judged.timed.decoder
    return {
        "": windows.name,
        "by": f"{decoder.who} {decoder.contestant.version}",
        "ms": judged.timed.milliseconds,
        "windows": judged.windows,
        "total variation": found.variation,
        "held reported": found.held_reported,
        "decoys reported": found.decoys_reported,
        "held above 0": found.held_above_zero,
        "decoys above 0": found.decoys_above_zero,
        "held beside as many decoys": judged.held_beside,
        "does": decoder.says,
    }


def _decodings(timed: Timed, windows: Windows, count: int) -> list[Decoding]:
    others = [timed.decoder.decode(windows, number)[0] for number in range(1, count)]
    return [_decoding(answer) for answer in (timed.answer, *others)]


def _decoding(answer: DecoderAnswer) -> Decoding:
    """Without `reported`, all candidates with a share above 0 count as present."""
    shares = np.array(answer["shares"])
    return Decoding(shares, np.array(answer["reported"]) if "reported" in answer else shares > 0)


def _mean(found: Sequence[Decoding], windows: Windows) -> Scores:
    return Scores(*np.mean([astuple(scores(one, windows.truth)) for one in found], axis=0).tolist())


def _held_beside(found: Sequence[Decoding], allowed: Sequence[float], windows: Windows) -> float:
    pairs = zip(found, allowed, strict=True)
    return float(np.mean([held_above(one.shares, windows.truth, int(decoys)) for one, decoys in pairs]))

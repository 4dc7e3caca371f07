"""Speed and quality of frequency estimation: k-RR by MLE*, RAPPOR by its decoder."""

from bench.comparison.failures import attempt
from bench.comparison.parts.decoding import decoding
from bench.comparison.parts.estimation import likelihood, sorting
from bench.comparison.report.figure import ResultsPart
from bench.comparison.timing.rounds import Scale

ABOUT = (
    "From counts in memory to frequencies in memory. All sides get the same counts, simulated once, and the "
    "same parameters: p and q as our mechanisms realise them. One core each, in turn; milliseconds of "
    "processor time of one estimate, medians of the rounds; `passed` is time on the clock."
)


def measure(scale: Scale) -> ResultsPart:
    """MLE* compared with an iterative update and with sorting; decoding with Lasso and least squares."""
    parts = [attempt(part, scale) for part in (likelihood, sorting, decoding)]
    return ResultsPart(
        "Estimation",
        " ".join([ABOUT, *(part.about for part in parts)]),
        [figure for part in parts for figure in part.figures],
        [table for part in parts for table in part.tables],
        [note for part in parts for note in part.notes],
        unjudged=[each for part in parts for each in part.unjudged],
    )

"""`deniable estimate`: frequencies from given counts, without Kafka."""

import json
from dataclasses import asdict
from typing import Any, BinaryIO

import click
import numpy as np
from numpy.typing import NDArray

from deniable.deploy.cli.input_text import name_of, read_text
from deniable.deploy.cli.options import NumberRange, refuse_alone
from deniable.deploy.offline.estimate_table import contradictions, record_of, table
from deniable.deploy.offline.integers import parse_whole
from deniable.estimators.detectors.fit import FIT, with_fit
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.ibu import ITERATIONS, TOLERANCE
from deniable.estimators.frequency.krr import ESTIMATORS
from deniable.estimators.frequency.krr import estimate as estimate_krr
from deniable.estimators.frequency.pairs.estimate import estimate_pair
from deniable.estimators.mechanisms.krr import KRR, LARGEST_EPSILON
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.protocol.words import number_of

# Beyond this, numbers of reports are no longer exact as floats.
MOST_REPORTS = 1 << 53
MOST_VALUES = 1_400_000
MOST_BYTES = 1 << 25
EPSILON = NumberRange(0, LARGEST_EPSILON, min_open=True)


@click.group()
def estimate() -> None:
    """Estimate frequencies from counts of randomized reports; does not connect.

    Example: deniable estimate k-rr --epsilon 1.0986 --counts 50,30,15,5
    """


@estimate.command("k-rr")
@click.option(
    "--epsilon",
    type=EPSILON,
    required=True,
    help="Privacy loss of one report, in (0, 16]; k is the number of counts.",
)
@click.option(
    "--estimator",
    type=click.Choice(ESTIMATORS),
    default="mle",
    show_default=True,
    help="Estimator of the frequencies; errors and intervals always come from inv.",
)
@click.option("--counts", metavar="N,N,...", help="Reports per value, at least two values.")
@click.option(
    "--input",
    "source",
    type=click.File("rb"),
    help="Read the counts from a file, one a line; - for stdin.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=ITERATIONS,
    show_default=True,
    help="Maximum number of ibu's iterations.",
)
@click.option(
    "--tolerance",
    type=NumberRange(0),
    default=TOLERANCE,
    show_default=True,
    help="ibu stops when an iteration changes the estimate by less.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def krr_command(
    epsilon: float,
    estimator: str,
    counts: str | None,
    source: BinaryIO | None,
    iterations: int,
    tolerance: float,
    as_json: bool,
) -> None:
    """Estimate how frequent each true value is from how often k-RR reported each value.

    Example: deniable estimate k-rr --epsilon 1.0986 --counts 50,30,15,5 --json
    """
    if estimator != "ibu":
        refuse_alone("--iterations", "--estimator ibu")
        refuse_alone("--tolerance", "--estimator ibu")
    if counts is not None and source is None:
        place, text = "--counts, number", counts.replace(",", "\n")
    elif source is not None and counts is None:
        place, text = f"{name_of(source)}, line", read_text(source, MOST_BYTES).rstrip()
    else:
        raise click.UsageError("give either --counts N,N,... or --input FILE")
    try:
        numbers = _whole_numbers(text, place)
        mechanism = KRR.from_epsilon(len(numbers), epsilon)
        result = _tested(
            estimate_krr(numbers, mechanism, estimator, iterations, tolerance), numbers, mechanism
        )
    except ValueError as error:
        refused = click.ClickException if counts is None else click.UsageError
        raise refused(str(error)) from error
    click.echo(json.dumps(_record(result, mechanism), allow_nan=False) if as_json else _table(result))


@estimate.command("k-rr-pair")
@click.option(
    "--epsilon", type=EPSILON, required=True, help="Privacy loss of one report; both fields share it."
)
@click.option(
    "--input",
    "source",
    type=click.File("rb"),
    required=True,
    help="Reports per pair: a line for each first value, with a count for each second one; - for stdin.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def pair_command(epsilon: float, source: BinaryIO, as_json: bool) -> None:
    """Estimate the joint table of two fields from how often each pair was reported.

    Example: deniable estimate k-rr-pair --epsilon 2 --input f.csv
    """
    rows = [line.split(",") for line in read_text(source, MOST_BYTES).rstrip().split("\n")]
    try:
        if len({len(row) for row in rows}) > 1:
            raise ValueError(f"{name_of(source)}: every line must have as many counts as the first")
        numbers = _whole_numbers(
            "\n".join(count for row in rows for count in row), f"{name_of(source)}, count"
        )
        mechanism = PairKRR.from_epsilons(len(rows), len(rows[0]), epsilon / 2, epsilon / 2)
        result = _tested(estimate_pair(numbers, mechanism), numbers, mechanism)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    names = [f"{first} / {second}" for first in range(len(rows)) for second in range(len(rows[0]))]
    if as_json:
        found = record_of(names, result, "pair") | _of_pair(result)
        click.echo(json.dumps({"epsilon": mechanism.epsilon} | found, allow_nan=False))
    else:
        click.echo(table(names, result, "pair"))


def _tested(result: Estimate, numbers: NDArray[np.int64], mechanism: KRR | PairKRR) -> Estimate:
    """Add the test of fit."""
    return with_fit(result, numbers[None], numbers.sum(keepdims=True), mechanism)


def _of_pair(result: Estimate) -> dict[str, Any]:
    """Return margins, and the test of independence, for programs."""
    if result.pair is None:
        return {}
    columns = ("frequency", "std_error", "low", "high")
    margins = [{name: getattr(margin, name).tolist() for name in columns} for margin in result.pair.margins]
    test = result.pair.independence
    return {"margins": margins, "independence": asdict(test) | {"rejected": test.is_rejected}}


def _whole_numbers(text: str, place: str) -> NDArray[np.int64]:
    """Parse counts, one a line; ValueError names the first wrong line."""
    fields = text.split("\n") if text else []
    wrong_number = ValueError(f"there must be 2 to {MOST_VALUES} counts, got {len(fields)}")
    if len(fields) > MOST_VALUES or not text.strip():
        raise wrong_number
    numbers = []
    for number, field in enumerate(fields, start=1):
        try:
            numbers.append(parse_whole(field, 0, MOST_REPORTS, is_option=place.startswith("--")))
        except ValueError as error:
            raise ValueError(f"{place} {number}: {error}") from error
    if len(numbers) < 2:
        raise wrong_number
    if sum(numbers) > MOST_REPORTS:
        raise ValueError(f"counts must sum to at most {MOST_REPORTS}, got {sum(numbers)}")
    return np.array(numbers, np.int64)


def _record(result: Estimate, mechanism: KRR) -> dict[str, Any]:
    """Return the estimate for programs: arrays of equal length, in the order of the counts."""
    return {
        "estimator": result.estimator,
        "N": result.reports,
        "epsilon": mechanism.epsilon,
        "p": mechanism.p,
        "q": mechanism.q,
        "frequency": result.frequency.tolist(),
        "count": (result.frequency * result.reports).tolist(),
        "std_error": result.std_error.tolist(),
        "low": result.low.tolist(),
        "high": result.high.tolist(),
        "significant": result.significant.tolist(),
        "diagnostics": result.diagnostics,
    }


def _table(result: Estimate) -> str:
    """Return the estimate for people: a line for each value, numbered from 0."""
    lines = [f"{number_of(result.reports, 'report')}, estimator {result.estimator}, 95 % intervals"]
    lines += [f"{name}: {figure:g}" for name, figure in result.diagnostics.items() if name != FIT]
    lines.append(f"{'value':>7} {'frequency':>10} {'std error':>10} {'low':>9} {'high':>9} {'count':>12}")
    columns = (result.frequency, result.std_error, result.low, result.high)
    for value, (frequency, error, low, high) in enumerate(zip(*columns, strict=True)):
        count = frequency * result.reports
        lines.append(f"{value:>7} {frequency:>10.6f} {error:>10.6f} {low:>9.6f} {high:>9.6f} {count:>12.1f}")
    lines += contradictions(result.diagnostics)
    return "\n".join(lines)

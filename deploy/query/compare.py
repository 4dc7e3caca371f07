"""`deniable compare`: which shares differ between two periods."""

from pathlib import Path
from typing import Any

import click
import msgspec

from deniable.aggregator.history.periods import Period
from deniable.analysis.comparison import ComparisonRecord, JoinedPeriod, check_comparable, compare_periods
from deniable.analysis.errors import AnalysisError
from deniable.analysis.periods import named_period
from deniable.config.file import load
from deniable.deploy.cli.options import NumberRange, config_option, servers_option
from deniable.deploy.offline.estimate_table import (
    LEAST_P_VALUE,
    contradictions,
    p_value_text,
    shown_share,
    without_candidates,
)
from deniable.deploy.query.past_windows import joined_of, json_option, print_coverage
from deniable.deploy.query.period_options import zone_asked, zone_option
from deniable.deploy.query.value_rows import rows_of
from deniable.estimators.frequency.significance import ALLOWED_RATES, FALSE_DISCOVERY_RATE
from deniable.protocol.words import number_of


class NamedPeriod(click.ParamType):
    """A period: START/END, a day, a week or a month."""

    name = "PERIOD"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Period:
        """Return the period."""
        try:
            return named_period(str(value), zone_asked())
        except AnalysisError as error:
            self.fail(str(error), parameter, context)


@click.command()
@click.argument("collection")
@click.option(
    "--between",
    "first",
    type=NamedPeriod(),
    required=True,
    help="First period: START/END in ISO 8601, or in local time a day such as 2026-01-31, an ISO week such "
    "as 2026-W05, or a month such as 2026-01.",
)
@click.option("--and", "second", type=NamedPeriod(), required=True, help="Second period, as --between.")
@zone_option
@click.option(
    "--rate",
    type=NumberRange(*ALLOWED_RATES),
    default=FALSE_DISCOVERY_RATE,
    show_default=True,
    help="Expected share of false discoveries among the differences marked with *, at most.",
)
@json_option
@config_option
@servers_option
def compare(
    collection: str,
    first: Period,
    second: Period,
    rate: float,
    as_json: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Find which shares differ between two periods, from their final windows.

    Errors, and so the rate, are of the randomizers' noise alone: a difference is one between those who
    reported. Where other people report in each period, shares may differ although nobody changed; the larger
    epsilon is, the more often the test finds that.

    Example: deniable compare carrier --between 2026-01 --and 2026-02
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    check_comparable(asked, first, second)
    sides = [JoinedPeriod(each, joined_of(loaded, asked, each)) for each in (first, second)]
    record = compare_periods(asked, sides[0], sides[1], rate)
    if as_json:
        click.echo(msgspec.json.encode(record))
        return
    for coverage in record.coverage:
        print_coverage(asked, coverage)
    click.echo("\n".join(lines_of(record)))


def lines_of(record: ComparisonRecord) -> list[str]:
    """Return a table for people: the largest differences in standard errors first."""
    periods = [
        f"{period}: {number_of(reports, 'report', ',')} in {number_of(windows, 'window', ',')}"
        for period, reports, windows in zip(
            (record.between, record.other_period), record.reports, record.windows, strict=True
        )
    ]
    for period, diagnostics in record.fits():
        periods += [f"{period}: {line}" for line in contradictions(diagnostics)]
    if not record.values:
        return [*periods, without_candidates(record.collection)]

    def figures(place: int) -> str:
        first, second = shown_share(record.first_share[place]), shown_share(record.second_share[place])
        low, high = record.low[place], record.high[place]
        difference = min(max(record.difference[place], low), high)  # noise may take it out of [-1, 1], too
        return (
            f"{first:>9.6f} {second:>9.6f} {difference:>+10.6f} {low:>+9.6f} {high:>+9.6f} "
            f"{_p_value_cell(record.p_value[place]):>8}{' *' if record.significant[place] else ''}"
        )

    order = sorted(range(len(record.values)), key=lambda place: record.p_value[place])
    heads = f"{'first':>9} {'second':>9} {'difference':>10} {'low':>9} {'high':>9} {'p':>8}"
    return [*periods, *_verdict(record), *rows_of(record.values, order, heads, figures)]


def _verdict(record: ComparisonRecord) -> list[str]:
    """Say how many shares differ, and what that allows for."""
    found = sum(record.significant)
    verdict = f"{found} of {number_of(len(record.values), 'share')} differ{'s' if found == 1 else ''} (*)"
    if found == 0:
        return [verdict]
    return [
        f"{verdict}; of those, at most {100 * record.rate:.3g} % are expected to be false",
        "* allows for the randomizers' noise alone: where other people report in each period, shares may",
        "differ although nobody changed",
    ]


def _p_value_cell(p_value: float) -> str:
    return f"{p_value:.2g}" if p_value >= LEAST_P_VALUE else p_value_text(p_value).removeprefix("p ")

"""`deniable decode --grow`: find frequent texts of past windows, and print them."""

import click
import msgspec

from aggregator.history.growth import grow_windows, growth_record, shown_text
from aggregator.history.periods import Period
from aggregator.history.rollup import too_few_reports
from deploy.config.file import Configuration
from deploy.offline.estimate_table import printable_name
from deploy.query.past_windows import past_of
from estimators.collection import Collection
from estimators.decoding.hashed.growth.expected_finds import least_found
from estimators.decoding.hashed.growth.grow import FoundTexts
from estimators.mechanisms.hashing.prefix_tree import PrefixTree


def grown(
    configuration: Configuration,
    collection: Collection,
    period: Period,
    alphabet: str,
    rate: float,
    *,
    as_json: bool,
) -> None:
    """Find frequent texts in the windows of a period, and print them.

    Parameters
    ----------
    configuration, collection : of the deployment.
    period : whose windows are joined.
    alphabet : characters of the texts; empty for any.
    rate : largest expected share of false texts among those found, in (0, 1).
    as_json : True for a `GrowthRecord`.

    Raises
    ------
    click.ClickException if the collection is no prefix tree, there are too few reports (after the record), or
    a level has none.
    """
    mechanism = collection.mechanism
    if not isinstance(mechanism, PrefixTree):
        raise click.ClickException(
            f"--grow needs a collection with mechanism prefix-tree, got {collection.name} with "
            f"{mechanism.name}; of rappor and local hashing, give --candidates FILE"
        )
    past = past_of(configuration, collection, period)
    try:
        found = grow_windows(collection, mechanism, past.joined, alphabet, rate)
    except ValueError as error:
        raise click.ClickException(f"the tree cannot be grown: {error}") from error
    if as_json:
        click.echo(msgspec.json.encode(growth_record(collection, past.coverage, past.joined, rate, found)))
    else:
        past.print_coverage()
    if found is None:
        raise click.ClickException(too_few_reports(collection, past.joined))
    if not as_json:
        click.echo(found_table(found, mechanism))


def found_table(found: FoundTexts, mechanism: PrefixTree) -> str:
    """Return what was found for people; `...` after a text says that it may go on."""
    reports = int(found.reports.sum())
    lines = [
        f"{reports} reports on {mechanism.cohorts} levels, {len(found.texts)} texts found among "
        f"{found.tested} tested;\nof those found, at most {found.rate:.1%} are expected to be false; 95 %"
        " intervals",
    ]
    columns = (found.texts, found.is_whole, found.frequency, found.std_error, found.low, found.high)
    for text, is_whole, frequency, error, low, high in zip(*columns, strict=True):
        shown = printable_name(shown_text(text)) + ("" if is_whole else "...")
        lines.append(f"{frequency:.6f} +- {error:.6f}  [{low:.6f}, {high:.6f}]  {shown}")
    share, error = found.unexplained
    lines.append(f"{share:.6f} +- {error:.6f}  of all reports are none of these texts")
    if not found.texts:
        least = least_found(mechanism, reports)
        lines.append(f"with so many reports, texts are found from a share of about {least:.4f} on")
    return "\n".join(lines)

"""`deniable decode --grow`: find frequent texts of past windows, and print them."""

import click
import msgspec

from deniable.aggregator.history.growth import growth_record
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import coverage_of, too_few_reports
from deniable.analysis.errors import AnalysisError
from deniable.analysis.functions.decoding import found_texts
from deniable.config.file import Configuration
from deniable.deploy.offline.estimate_table import printable_name
from deniable.deploy.query.past_windows import joined_of, print_coverage
from deniable.estimators.collection import Collection
from deniable.estimators.decoding.hashed.growth.expected_finds import ExpectedSearch
from deniable.estimators.decoding.hashed.growth.grow import FoundTexts
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.mechanism import tree_of
from deniable.protocol.words import number_of


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
    click.UsageError if the collection is no prefix tree; AnalysisError if there are too few reports
    (after the record), or a level has none.
    """
    tree = tree_of(collection.mechanism)
    if tree is None:
        raise click.UsageError(
            f"--grow needs a collection with mechanism prefix-tree, got {collection.name} with "
            f"{collection.mechanism.name}; of rappor and local hashing, give --candidates FILE"
        )
    joined = joined_of(configuration, collection, period)
    found, coverage = found_texts(collection, joined, alphabet, rate), coverage_of(collection, period, joined)
    if as_json:
        click.echo(msgspec.json.encode(growth_record(collection, coverage, joined, rate, found)))
    else:
        print_coverage(collection, coverage)
    if found is None:
        raise AnalysisError(too_few_reports(collection, joined))
    if not as_json:
        click.echo(found_table(found, tree))


def found_table(found: FoundTexts, mechanism: PrefixTree) -> str:
    """Return what was found for people.

    `...` after a text says that it may go on, `?` before it that it may be false: its interval reaches 0.
    """
    reports = int(found.reports.sum())
    lines = [
        f"{number_of(reports, 'report')} on {mechanism.cohorts} levels, {number_of(len(found.texts), 'text')}"
        " found among "
        f"{found.tested} tested;\nof those found, at most {100 * found.rate:.12g} % are expected to be false;"
        " 95 % intervals",
    ]
    figures = (found.frequency, found.std_error, found.low, found.high)
    columns = (found.texts, found.is_whole, found.significant, *figures)
    for text, is_whole, is_significant, frequency, error, low, high in zip(*columns, strict=True):
        mark = " " if is_significant else "?"
        shown = printable_text(text) + ("" if is_whole else "...")
        lines.append(f"{frequency:.6f} +- {error:.6f}  [{low:.6f}, {high:.6f}] {mark} {shown}")
    if doubtful := len(found.texts) - int(found.significant.sum()):
        lines.append(
            f"? {doubtful} of them may be false: they passed the test so narrowly that their shares may be 0"
        )
    if found.texts:
        share, error = found.unexplained
        lines.append(f"{share:.6f} +- {error:.6f}  of all reports are none of these texts")
    else:
        lines.append(_nothing_found(mechanism, reports))
    return "\n".join(lines)


def _nothing_found(mechanism: PrefixTree, reports: int) -> str:
    least = ExpectedSearch.of_few_texts(mechanism, reports).least_found()
    if least is None:
        return "with so few reports, no share is enough for an even chance to be found"
    return (
        f"with so many reports, texts of the alphabet are found from a share of about {least:.4f} on, at the"
        f" default rate of {100 * FALSE_DISCOVERY_RATE:g} %"
    )


def printable_text(text: bytes) -> str:
    """Write a text for people; one with a character that the last level cuts, in quotes, with its bytes."""
    try:
        return printable_name(text.decode())
    except UnicodeDecodeError:
        shown = [
            # A byte that is no UTF-8 becomes a lone surrogate, the byte plus 0xDC00.
            f"\\x{ord(each) - 0xDC00:02x}" if 0xDC80 <= ord(each) <= 0xDCFF else _escaped(each)
            for each in text.decode("utf-8", "surrogateescape")
        ]
        return f"'{''.join(shown)}'"


def _escaped(character: str) -> str:
    if character in ("'", "\\"):
        return f"\\{character}"
    return character if character.isprintable() else ascii(character)[1:-1]

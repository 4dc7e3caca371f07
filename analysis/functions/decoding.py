"""What `deniable.decode` and `deniable.grow` do, with the figures of the command."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from deniable.aggregator.history.growth import grow_windows, growth_record
from deniable.aggregator.history.rollup import coverage_of, too_few_reports
from deniable.aggregator.history.window_reader import Joined
from deniable.analysis.arguments import check_name, check_type, texts_of
from deniable.analysis.errors import AnalysisError, WrongArgumentError
from deniable.analysis.functions.read import Config, configuration_of
from deniable.analysis.functions.roll_ups import asked_period, check_rate, joined_windows, rolled_up
from deniable.analysis.periods import TimeGiven
from deniable.analysis.sources.files import Files
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.analysis.tables.growth_table import growth_table
from deniable.estimators.collection import Collection
from deniable.estimators.decoding.hashed.growth.alphabet import alphabet_of
from deniable.estimators.decoding.hashed.growth.grow import FoundTexts
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE
from deniable.estimators.mechanisms.hashing.prefix_tree import utf_8
from deniable.estimators.mechanisms.mechanism import tree_of

CANDIDATES_ALLOWED = "a list of distinct strings, at least one"


def decode(
    config: Config | None = None,
    *,
    collection: str,
    candidates: Iterable[str],
    start: TimeGiven | None = None,
    end: TimeGiven | None = None,
    last: str | None = None,
    other: bool = False,
    files: Files | None = None,
) -> ArrowTable:
    """Look for other strings in the final windows of a period, like the command `deniable decode`.

    Parameters
    ----------
    config, collection, start, end, last, other, files : as of `rollup`.
    candidates : distinct strings to look for, at least one: a list, set, Series, array or generator.

    Returns
    -------
    ArrowTable with a row for each candidate; see `rollup`.

    Raises
    ------
    AnalysisError as `rollup`, and if the collection's values cannot change later.
    """
    check_name(collection)
    loaded = configuration_of(config)
    asked = loaded.collection(collection)
    check_any_text(asked)
    wanted_texts = texts_of("candidates", candidates, CANDIDATES_ALLOWED)
    number, distinct = len(wanted_texts), len(set(wanted_texts))
    if not number or distinct != number:
        raise WrongArgumentError(
            f"candidates must be {CANDIDATES_ALLOWED}, got {number}, {distinct} distinct"
        )
    for each in wanted_texts:
        if any("\ud800" <= character <= "\udfff" for character in each):
            raise WrongArgumentError(f"candidates must be Unicode texts, got {each!a}: a lone surrogate")
    check_beginnings(asked, wanted_texts)
    wanted = replace(asked, candidates=tuple(wanted_texts))
    return rolled_up(loaded, wanted, asked_period(asked, start, end, last), files, other=other)


def grow(
    config: Config | None = None,
    *,
    collection: str,
    start: TimeGiven | None = None,
    end: TimeGiven | None = None,
    last: str | None = None,
    alphabet: str | None = None,
    rate: float = FALSE_DISCOVERY_RATE,
    files: Files | None = None,
) -> ArrowTable:
    """Find frequent texts without candidates, like the command `deniable decode --grow`.

    Parameters
    ----------
    config, collection, start, end, last, files : as of `rollup`; the collection is a prefix tree.
    alphabet : characters of the texts, empty for any; by default that of the collection.
    rate : largest expected share of false texts among those found, in (0, 1).

    Returns
    -------
    ArrowTable with a row for each text, see `growth_table`.

    Raises
    ------
    AnalysisError as `rollup`, if the collection is no prefix tree, or the tree cannot be grown.
    """
    check_name(collection)
    check_type("alphabet", "" if alphabet is None else alphabet, str, "a text")
    check_rate(rate)
    try:
        alphabet_of(alphabet or "")
    except ValueError as error:
        raise WrongArgumentError(str(error)) from error
    loaded = configuration_of(config)
    asked = loaded.collection(collection)
    if tree_of(asked.mechanism) is None:
        raise WrongArgumentError(
            f"grow needs a collection with mechanism prefix-tree, got {collection} with "
            f"{asked.mechanism.name}; of rappor and local hashing, use decode with candidates"
        )
    period = asked_period(asked, start, end, last)
    joined = joined_windows(loaded, asked, period, files)
    found = found_texts(asked, joined, asked.alphabet if alphabet is None else alphabet, rate)
    if found is None:
        raise AnalysisError(too_few_reports(asked, joined))
    return growth_table(growth_record(asked, coverage_of(asked, period, joined), joined, rate, found))


def found_texts(collection: Collection, joined: Joined, alphabet: str, rate: float) -> FoundTexts | None:
    """Grow a tree, as `grow_windows` does; AnalysisError if it cannot be grown."""
    try:
        return grow_windows(collection, joined, alphabet, rate)
    except ValueError as error:
        raise AnalysisError(f"the tree cannot be grown: {error}") from error


def check_any_text(collection: Collection) -> None:
    """Raise WrongArgumentError if other strings cannot be looked for in the past of a collection."""
    if not collection.takes_any_text:
        raise WrongArgumentError(
            "decode needs a collection with mechanism rappor, local-hash, local-hash-longitudinal or "
            f"prefix-tree, got {collection.name} with {collection.mechanism.name}, whose values cannot "
            "change later; use rollup"
        )


def check_beginnings(collection: Collection, candidates: Sequence[str]) -> None:
    """Raise WrongArgumentError if reports of a prefix tree cannot tell two candidates apart."""
    tree = tree_of(collection.mechanism)
    if tree is None:
        return
    first: dict[bytes, int] = {}
    for number, each in enumerate(candidates, start=1):
        same = first.setdefault(tree.prefix(utf_8(each), tree.cohorts - 1), number)
        if same != number:
            raise WrongArgumentError(
                f"candidates must differ in their first {tree.lengths[-1]} bytes, all that reports of "
                f"{collection.name} have; candidate {number} is like candidate {same} there: leave one out"
            )

"""A collection in words: what it asks, what a report costs, and how many a client may send."""

import math
import unicodedata

from deniable.config.settings.allowance import UNLIMITED, Allowance, Budget
from deniable.estimators.collection import OTHER_LABEL, Collection
from deniable.estimators.mechanisms.directed_rounding import exp_above, rounded_up
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism, bits_of, bloom_of
from deniable.estimators.mechanisms.rappor import LEAST_COHORTS, Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.protocol.notation import ListedTexts
from deniable.protocol.words import number_of

#: The condition of what values that change cost for ever: see docs/parameters.md, values that change.
KNOWN_CHANGES = "if it is known when buckets change"
KNOWN_VALUES = "if it is known when values change"


def describe(allowance: Allowance) -> str:
    """Return one paragraph: name, mechanism, windows, epsilon, a client's limits; last, what few need."""
    collection = allowance.collection
    epsilon = collection.mechanism.epsilon
    lines = [
        f"{collection.name}: {_mechanism(collection)}, windows of {collection.window_seconds} s"
        f" + {collection.grace_seconds} s grace",
        *describe_cost(allowance),
        *_unlisted(collection),
        *_few_cohorts(collection),
        *_confusable(collection),
        *_of_python(collection),
        f"a report cannot change anyone's odds by more than a factor {rounded_up(exp_above(epsilon))}; "
        f"fingerprint {collection.fingerprint:016x}",
    ]
    return "\n  ".join(lines)


def describe_cost(allowance: Allowance) -> list[str]:
    """Say what one report and all reports of a client cost, and how many a client may send."""
    epsilon = allowance.collection.mechanism.epsilon
    return [f"one report: epsilon {rounded_up(epsilon)}", _further_reports(allowance), *_limits(allowance)]


def most_changes(changes: int) -> str:
    """Say how many changes of bucket a client shows, whatever its values do."""
    return f"at most {number_of(changes, 'change')} of bucket"


def shown_buckets(mechanism: LongitudinalHash, changes: int | None) -> int:
    """Return in how many buckets a client shows values; any number of changes is None."""
    return mechanism.hash_buckets if changes is None else min(mechanism.hash_buckets, changes + 1)


def condition_for_ever(mechanism: Mechanism, changes: int | None = None) -> str:
    """Return the condition of what a client costs for ever; "" if it shows no change, which needs none."""
    if isinstance(mechanism, LongitudinalHash):
        return "" if shown_buckets(mechanism, changes) == 1 else KNOWN_CHANGES
    return KNOWN_VALUES


def condition_of_limit(allowance: Allowance, limit: int) -> str:
    """Return the condition of what `limit` reports cost whatever the values do; "" if they need none.

    Where the budget covers changes, a number of reports needs one for permanent bits only.
    """
    mechanism, condition = allowance.collection.mechanism, ""
    if allowance.memoized:
        condition = condition_for_ever(mechanism, allowance.changes)
    if allowance.values == "unchanged":
        return condition
    is_needed = limit > 1 and (limit == UNLIMITED or bits_of(mechanism) is not None)
    return condition if is_needed else ""


def whatever_values(figure: float, condition: str) -> str:
    """Write a bound that holds whatever the values do, with its condition."""
    if math.isinf(figure):
        return "whatever its values do, nothing bounds them"
    return f"whatever its values do: {rounded_up(figure)}{f', {condition}' if condition else ''}"


def _further_reports(allowance: Allowance) -> str:
    mechanism = allowance.collection.mechanism
    if not allowance.memoized:
        return "every further report of one client costs as much again, whatever its values do"
    unchanged = rounded_up(allowance.epsilon_inf("unchanged"))
    condition = condition_for_ever(mechanism, allowance.changes)
    if not condition:
        return f"all reports of one client: epsilon {unchanged}, whatever its values do"
    free = whatever_values(allowance.epsilon_inf("any"), condition)
    return f"all reports of one client: epsilon {unchanged} while its value stays the same; {free}"


def _unlisted(collection: Collection) -> list[str]:
    """Warn of bits of pairs where a field without `other` takes reports out of both margins."""
    if not collection.may_lack_bit:
        return []
    names = " or ".join(field.name for field in collection.fields if not field.other)
    return [
        f"warning: reports with an unlisted {names} are in no pair and in neither margin, only in the share "
        "`other`; avoid it with other: true"
    ]


def _few_cohorts(collection: Collection) -> list[str]:
    """Warn of RAPPOR with so few cohorts that tests are withheld."""
    bloom = bloom_of(collection.mechanism)
    if bloom is None or bloom.cohorts >= LEAST_COHORTS:
        return []
    return [
        f"warning: {number_of(bloom.cohorts, 'cohort')}: with fewer than {LEAST_COHORTS} no candidate is "
        "called significant, and every interval is from 0 to 1; let cohorts be 8 or more"
    ]


def _confusable(collection: Collection) -> list[str]:
    """Warn of values and candidates that tables show alike, or like all others, or inputs write alike."""
    texts = (*collection.candidates, *collection.values)
    texts = tuple(text for field in collection.fields for text in field.values) or texts
    lines, seen = [], dict[str, str]()
    if OTHER_LABEL in texts:
        lines.append(
            f"warning: tables also call the share of all others {OTHER_LABEL}, like one of its values"
        )
    pairs = ((text, seen.setdefault(unicodedata.normalize("NFC", text), text)) for text in texts)
    if two := next(((one, other) for one, other in pairs if one != other), None):
        lines.append(
            f"warning: {two[1]!a} and {two[0]!a} differ only in their Unicode form: tables show them alike"
        )
    lists = [field.values for field in collection.fields] or [collection.values, collection.candidates]
    if two := next(filter(None, (ListedTexts(values).confused for values in lists)), None):
        lines.append(
            f"warning: {two[0]!a} and {two[1]!a} are of the same number or truth value: in another notation, "
            "such as 1.0 or True, it means neither"
        )
    return lines


def _of_python(collection: Collection) -> list[str]:
    """Say that browsers lack the mechanism."""
    return [] if collection.mechanism.is_in_browsers else ["from Python alone: browsers lack this mechanism"]


def _limits(allowance: Allowance) -> list[str]:
    """Return the limits that producers enforce for each client, if the application names clients."""
    of_windows = f"{number_of(allowance.reports_per_window, 'report')} per window"
    budget = allowance.budget
    if budget is None:
        return [f"a client may send {of_windows}, without a limit over time: no budget is enforced"]
    limit = allowance.unspent_limit
    of_periods = "any number" if limit == UNLIMITED else number_of(limit, "report")
    lines = [f"a client may send {of_windows}, {of_periods} per period of {_budget(budget)}"]
    lines += _holds_for(allowance, limit) if allowance.memoized else []
    lines += _in_browsers(allowance)
    if limit == 0:
        lines.append("warning: one report costs more than the budget, so every report of a client is refused")
    return lines


def _holds_for(allowance: Allowance, limit: int) -> list[str]:
    """Say what the number of memoized reports holds for, and what it costs whatever the values do."""
    condition = condition_of_limit(allowance, limit)
    if allowance.values == "any":
        known = f", {condition}" if condition else ""
        return [f"so many stay within the budget whatever a client's values do{known}"] if limit else []
    cost = allowance.epsilon_inf("any") if limit == UNLIMITED else allowance.epsilon(limit, "any")
    free = whatever_values(cost, condition)
    return [f"so many stay within the budget while a client's value stays the same; {free}"]


def _in_browsers(allowance: Allowance) -> list[str]:
    """Say what a budget with changes, which only producers in Python limit, means for browsers."""
    figure = allowance.collection.mechanism.epsilon_of_all_buckets
    if figure is None or allowance.changes is None:
        return []
    return [
        "browsers do not limit changes: they may send fewer reports per period, and for ever all buckets may "
        f"show, epsilon {rounded_up(figure)}, {KNOWN_CHANGES}"
    ]


def _budget(budget: Budget) -> str:
    covered = "" if budget.values is None else f", values {budget.values}"
    if budget.changes is not None:
        covered += f", showing {most_changes(budget.changes)}"
    return f"{budget.period_seconds} s (budget: epsilon {budget.epsilon:g}, delta {budget.delta:g}{covered})"


def _mechanism(collection: Collection) -> str:
    candidates = number_of(len(collection.candidates), "candidate")
    last = ", the last one for all other values" if collection.other else ""
    match collection.mechanism:
        case Rappor() as bloom:
            hashes = "1 hash" if bloom.hashes == 1 else f"{bloom.hashes} hashes"
            return f"RAPPOR, {bloom.bits} bits, {hashes}, {number_of(bloom.cohorts, 'cohort')}, {candidates}"
        case SquareWave(minimum, maximum, steps):
            return f"Square Wave over numbers in [{minimum:.10g}, {maximum:.10g}] in {steps} steps"
        case PairKRR() as pair:
            return "k-RR of pairs, " + " and ".join(
                f"{field.name} over {krr.k} buckets with epsilon {rounded_up(krr.epsilon)}"
                for field, krr in zip(collection.fields, pair.fields, strict=True)
            )
        case OneHotPair() as pair:
            names = " and ".join(
                f"{field.name} over {k} buckets"
                for field, k in zip(collection.fields, pair.shape, strict=True)
            )
            return f"one bit for each of {pair.buckets} pairs, {names}"
        case PrefixTree(lengths, oracle):
            return (
                f"a prefix tree with levels of {' '.join(map(str, lengths))} bytes, {oracle.hash_functions} "
                f"functions into {oracle.hash_buckets} buckets on each, {candidates}"
            )
        case FunctionPool() as pool:
            functions = number_of(pool.hash_functions, "function")
            return f"{pool.title}, {functions} into {pool.hash_buckets} buckets, {candidates}"
        case HotRappor() as hot:
            return f"RAPPOR over {hot.buckets} buckets, {hot.hot} in an answer{last}"
        case values:
            return f"{values.title} over {values.domain_size} buckets{last}"

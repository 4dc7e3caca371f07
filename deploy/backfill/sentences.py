"""What a run says: what its output costs in privacy, and what became of the events, in counts."""

from collections import Counter
from collections.abc import Iterator

from deniable.config.describe import describe_cost
from deniable.config.settings.allowance import Allowance
from deniable.deploy.backfill.past_counts import PastCounts
from deniable.deploy.backfill.past_files import PastFiles, Unwritten
from deniable.deploy.produce.input.batches import InputBatches
from deniable.deploy.produce.view import WHY_REFUSED
from deniable.protocol.words import number_of


def cost_lines(allowance: Allowance, *, has_clients: bool) -> list[str]:
    """Say whom the output protects from whom, and at which epsilon."""
    name = allowance.collection.name
    costs = describe_cost(allowance)
    if not has_clients:
        alone = "each event is taken for another client's, so those of one person add up without a limit"
        costs = [*costs[:2], f"--no-clients: {alone}"]
    return [
        f"{name}: this machine holds the true events, so nothing protects them from whoever runs this; noise "
        "protects them from readers of the files, as it does live reports",
        *(f"  {line}" for line in costs),
        "  what the same clients report live adds to that, and so does another run over the same events with "
        "other folders or parameters",
    ]


def outcome_lines(
    past: PastCounts, feed: InputBatches, files: PastFiles, lacking: set[int], unwritten: Unwritten
) -> Iterator[str]:
    """Say how many events were counted, how many were not and why, and what was written.

    No figure depends on a value.
    """
    name, written = past.collection.name, past.counted - lacking
    refused: Counter[str] = Counter()
    for (start, reason), count in past.refused.items():
        refused[reason] += count if start in written else 0
    reports = sum(past.events[start] for start in written) - refused.total()
    parts = [
        f"{number_of(feed.used, 'event', ',')} read",
        f"{number_of(reports, 'report', ',')} counted",
        *(
            f"{number_of(count, 'event', ',')} refused, {WHY_REFUSED[reason]}"
            for reason, count in sorted(refused.items())
            if count
        ),
        *([f"{number_of(feed.skipped, 'line', ',')} skipped"] if feed.skipped else []),
    ]
    yield f"{name}: {'; '.join(parts)}"
    minimum = past.collection.minimum_reports
    for starts, why in (
        (
            past.present,
            "left out: the files have them, and another randomization is another look at the same people",
        ),
        (past.open, "left out: still open, so that live reports may come until the end of their grace"),
        (
            lacking,
            "left out: the files have other windows of the same budget periods, whose events this input "
            "lacks, so what clients have spent is not known; give all events of a period in one input",
        ),
        (unwritten.few, f"without an estimate: fewer reports than minimum_reports, {minimum}"),
        (unwritten.unfit, "without an estimate: none fits their counts"),
    ):
        if starts:
            events = sum(past.events[start] for start in starts)
            windows = number_of(len(starts), "window", ",")
            yield f"{name}: {number_of(events, 'event', ',')} of {windows} {why}"
    for each in files.both:
        kind = "counts" if each.kind == "windows" else each.kind
        windows = number_of(len(each.windows), "window", ",")
        new = (
            f"{windows} written to {number_of(len(each.files), 'file')}" if each.windows else "no new windows"
        )
        yield f"{name}: {new} of {kind} in {each.place}"

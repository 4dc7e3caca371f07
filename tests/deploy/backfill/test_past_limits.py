"""Limits of clients in the time of the events, against a model of them."""

from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

from deniable.config.settings.allowance import Allowance, Budget
from deniable.deploy.backfill import command
from deniable.deploy.backfill.past_limits import PastLimits, period_seconds
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.protocol.secrets.secret import Secret
from tests.deploy.backfill.runs import (
    DAY,
    HOUR,
    START,
    Event,
    backfill,
    collection_of,
    counts_in,
    events_of,
    said,
    shop,
    write_events,
)
from tests.support.messages import PinMessages

__all__ = ["shop"]

PER_WINDOW, PER_PERIOD = 2, 4


def model(events: list[Event], window: int = HOUR, period: int = DAY) -> list[bool]:
    """Which events count, first come, first served: of a client two in a window, and four in a period."""
    windows: Counter[tuple[str, int]] = Counter()
    periods: Counter[tuple[str, int]] = Counter()
    accepted = []
    for client, _, at in events:
        start = at // window * window
        keys = (client, start), (client, start // period)
        accepted.append(windows[keys[0]] < PER_WINDOW and periods[keys[1]] < PER_PERIOD)
        windows[keys[0]] += accepted[-1]
        periods[keys[1]] += accepted[-1]
    return accepted


@pytest.mark.parametrize(("window", "period"), [(HOUR, DAY), (7 * HOUR, DAY), (7 * DAY, DAY)])
def test_limits_hold_in_any_order_of_time(tmp_path: Path, window: int, period: int) -> None:
    """Also where windows cross the ends of periods, and where they are longer."""
    collection = Collection("plan", KRR.from_epsilon(3, 2.0), window_seconds=window)
    allowance = Allowance(collection, Budget(8.0, 1e-6, period), PER_WINDOW)
    assert allowance.unspent_limit == PER_PERIOD
    events = events_of(4000, hours=200, clients=40)
    limits = PastLimits(allowance, Secret(bytes(32)), tmp_path)
    found: list[bool] = []
    for first in range(0, len(events), 300):
        part = events[first : first + 300]
        windows = np.array([at // window * window for _, _, at in part])
        found += limits.charge([client for client, _, _ in part], windows).accepted.tolist()
    limits.close()
    assert found == model(events, window, period)
    assert 0 < sum(found) < len(found)


def test_without_a_budget_windows_alone_limit(tmp_path: Path) -> None:
    allowance = Allowance(Collection("plan", KRR.from_epsilon(3, 2.0), window_seconds=HOUR), None, PER_WINDOW)
    assert period_seconds(allowance) == HOUR
    limits = PastLimits(allowance, Secret(bytes(32)), tmp_path)
    windows = np.repeat(np.arange(500) * HOUR, 3)
    charged = limits.charge(["u"] * len(windows), windows)
    limits.close()
    assert charged.refused() == {"over_window": 500, "over_budget": 0, "too_late": 0}


def test_what_a_run_counts_is_within_the_limits(shop: Path) -> None:
    events = events_of(2000, hours=72, clients=30)
    write_events(events)
    said(backfill())
    expected: Counter[int] = Counter()
    for (_, _, at), is_accepted in zip(events, model(events), strict=True):
        expected[at // HOUR * HOUR] += is_accepted
    assert {start: each.reports for start, each in counts_in("counts").items()} == +expected


def test_two_runs_over_one_input_keep_the_budget_together(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run, when all windows are over, counts no event that the first would have refused."""
    events = events_of(1500, hours=24, clients=40)
    write_events(events)
    for now in (START + 12 * HOUR, START + 3 * DAY):
        monkeypatch.setattr(command, "time", SimpleNamespace(time=lambda now=now: float(now)))
        said(backfill())
    counted = {start: each.reports for start, each in counts_in("counts").items()}
    expected: Counter[int] = Counter()
    for (_, _, at), is_accepted in zip(events, model(events), strict=True):
        expected[at // HOUR * HOUR] += is_accepted
    assert counted == +expected


def test_a_period_of_which_the_input_has_a_part_is_refused(shop: Path, pin_messages: PinMessages) -> None:
    """What clients have spent in windows of another input is not known; the next day is counted."""
    events = events_of(1500, hours=48)
    by_day = defaultdict(list)
    for event in events:
        by_day["noon" if event[2] < START + 12 * HOUR else "rest"].append(event)
    write_events(by_day["noon"])
    said(backfill())
    write_events(by_day["rest"])
    lines = said(backfill())
    assert counts_in("counts").keys() == {
        *range(START, START + 12 * HOUR, HOUR),
        *range(START + DAY, START + 2 * DAY, HOUR),
    }
    assert collection_of().window_seconds == HOUR
    write_events(events)
    said(backfill())
    assert len(counts_in("counts")) == 48
    pin_messages({"a part of a period": lambda: "\n".join(lines)})

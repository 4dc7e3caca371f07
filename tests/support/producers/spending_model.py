"""A model of charging, one report at a time, in plain Python, to compare with the store."""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass
class _Client:
    until: int = 0
    reports: int = 0
    lifetime: int = 0
    carried: float = 0.0
    carried_lifetime: float = 0.0
    allowance: Any = None
    windows: Counter = field(default_factory=Counter)
    accepted: Counter = field(default_factory=Counter)

    def copied(self):
        return replace(self, windows=self.windows.copy(), accepted=self.accepted.copy())


def _basic(allowance, reports):
    return min(reports * allowance.epsilon_per_report, allowance.epsilon_inf("any"))


def _is_longer(period, allowance):
    """Whether a period, None if endless, is longer than those of an allowance."""
    return allowance.budget is not None and (period is None or period > allowance.budget.period_seconds)


def _above(epsilon):
    nearest = np.float32(epsilon)
    return float(np.nextafter(nearest, np.float32(np.inf)) if float(nearest) < epsilon else nearest)


class SpendingModel:
    """One collection; `limit(allowance, carried)` says how many reports a period allows."""

    def __init__(self, limit):
        self._limit = limit
        self._horizons = {}
        self.clients = {}

    def use(self, allowance):
        """Open the store under these parameters."""
        self._horizons.setdefault(allowance.collection.fingerprint, 0)

    def charge(self, allowance, reports, now):
        """Return the outcome of each (client, window): the reason of a refusal, or `accepted`."""
        collection = allowance.collection
        earliest = int(now) - collection.window_seconds - collection.grace_seconds
        self._horizons = {each: max(horizon, earliest) for each, horizon in self._horizons.items()}
        horizon = self._horizons[collection.fingerprint]
        opened = {}
        for client, _ in reports:
            newest = max(self.clients[client].windows) if client in self.clients else earliest
            opened[client] = max(earliest, min(horizon, newest))
        return [
            "too_late" if window < opened[client] else self._charge(allowance, client, window, earliest, now)
            for client, window in reports
        ]

    def _charge(self, allowance, client, window, earliest, now):
        # A copy: a refusal leaves everything as it was.
        kept = self.clients[client].copied() if client in self.clients else _Client(allowance=allowance)
        self._bring_up(kept, allowance, now)
        if kept.reports >= self._limit(allowance, kept.carried):
            return "over_budget"
        if kept.windows[window] >= allowance.reports_per_window:
            return "over_window"
        kept.windows = Counter({each: n for each, n in kept.windows.items() if n and each >= earliest})
        kept.windows[window] += 1
        # The model forgets no window: the store must not accept again in one that it forgot.
        key = (allowance.collection.fingerprint, window)
        assert kept.accepted[key] < allowance.reports_per_window
        kept.accepted[key] += 1
        kept.reports += 1
        kept.lifetime += 1
        self.clients[client] = kept
        return "accepted"

    def _bring_up(self, kept, allowance, now):
        period = None if allowance.budget is None else allowance.budget.period_seconds
        if _is_longer(period, kept.allowance):
            kept.reports, kept.carried = kept.lifetime, kept.carried_lifetime
        if period is None:
            kept.until = max(kept.until, int(now) + 1)
        else:
            start = math.floor(now / period) * period
            if start >= kept.until:
                kept.reports, kept.carried = 0, 0.0
            kept.until = max(kept.until, start + period)
        old, kept.allowance = kept.allowance, allowance
        if old.collection.fingerprint != allowance.collection.fingerprint:
            kept.carried = _above(kept.carried + _basic(old, kept.reports))
            kept.carried_lifetime = _above(kept.carried_lifetime + _basic(old, kept.lifetime))
            kept.reports = kept.lifetime = 0

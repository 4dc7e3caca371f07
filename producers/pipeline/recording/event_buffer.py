"""Where true values wait in memory for the thread that randomizes them: one bounded buffer a collection.

Rules:
1. An event is three neighbouring items of one list, added by one call of `extend`: one step of the
   interpreter, so threads and signal handlers neither lock nor separate them.
2. One thread takes events, by one step that copies the list and one that deletes what was copied. Events
   that are added between the two stay.
3. The list itself is never replaced: a thread that was interrupted before rule 1 adds to the right one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.wire import MAX_WINDOW_START

FIELDS = 3
MOST_EVENTS = 2**18


@dataclass(frozen=True)
class Events:
    """Events of one collection, in the order in which they were recorded.

    Parameters
    ----------
    values : n true values.
    clients : of each; None where the event is from a different client.
    times : of each, unix seconds.
    """

    values: list[Any] = field(repr=False)
    clients: list[str | None] = field(repr=False)
    times: list[float] = field(repr=False)

    def with_clients(self) -> "Events":
        """Return the events without those whose client is empty."""
        if "" not in self.clients:
            return self
        return self._only(np.array([each != "" for each in self.clients]))

    def in_time(self) -> "Events":
        """Return the events without those whose time no window has."""
        times = np.array(self.times, np.float64)
        is_in_time = (times >= 0) & (times <= MAX_WINDOW_START)
        return self if is_in_time.all() else self._only(is_in_time)

    def by_client(self) -> Iterator["Events"]:
        """Yield events with a client, then events without, each if there are any."""
        anonymous = self.clients.count(None)
        if anonymous in (0, len(self.clients)):
            yield from [self] if self.clients else []
            return
        has_client = np.array([each is not None for each in self.clients])
        yield self._only(has_client)
        yield self._only(~has_client)

    def _only(self, chosen: NDArray[np.bool_]) -> "Events":
        kept = chosen.tolist()
        return Events(*(list(compress(each, kept)) for each in (self.values, self.clients, self.times)))


class EventBuffer:
    """Events of one collection that were recorded and not yet taken.

    Parameters
    ----------
    value_type : of values that need no further check.
    checked : returns a value of another type as one that can be kept, or raises TypeError.

    Attributes
    ----------
    items : value, client and time of each event, one after the other.
    """

    full = FIELDS * MOST_EVENTS

    def __init__(self, value_type: type, checked: Callable[[object], object]) -> None:
        self.items: list[Any] = []
        self.value_type = value_type
        self.checked = checked

    def take(self) -> Events:
        """Remove and return all events; only one thread calls this."""
        taken = self.items[:]
        del self.items[: len(taken)]
        return Events(taken[0::FIELDS], taken[1::FIELDS], taken[2::FIELDS])

"""The newest revision of each window, from records in any order.

Rule 1: the higher revision of a window wins; at equal revision, the final one. Of repeated records the last
one counts. Two collections of one name with other parameters are two, each with its own windows.
Rule 2: a record without reports withdraws its window, which has no rows then.
Rule 3: an estimate in parts counts once all of them are there; until then the newest whole one does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable.analysis.errors import arrow
from deniable.analysis.sources.json_columns import (
    NUMBERS,
    OPTIONAL,
    UPPER,
    EstimateBatch,
    EstimateHead,
    Labels,
    batch_of,
)
from deniable.analysis.tables.estimate_table import OTHER, estimate_schema, repeated_text
from deniable.analysis.tables.revisions import TableRevision, TableWindow
from deniable.estimators.detectors.fit import FIT

BATCH_BYTES = 8 << 20
MICROSECONDS = 1_000_000

WindowName = tuple[str, str, int]
Version = tuple[int, bool]
BatchPlace = tuple[int, int]  # number of the batch, and of the record in it


class NewestEstimates:
    """Collects records of estimates; `table` has the newest of each window.

    Parameters
    ----------
    needs_all_parts : False where the source has the first part of an estimate alone.

    Attributes
    ----------
    foreign : records that are no estimates of this version.
    """

    def __init__(self, *, needs_all_parts: bool = True) -> None:
        self.foreign = 0
        self._needs_all_parts = needs_all_parts
        self._labels = Labels()
        self._batches: list[EstimateBatch] = []
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._found: dict[WindowName, dict[Version, dict[int, BatchPlace]]] = {}

    def add(self, record: bytes) -> bool:
        """Add one record; True if it is time to `convert`."""
        self._waiting.append(record)
        self._waiting_bytes += len(record)
        return self._waiting_bytes >= BATCH_BYTES

    def taken(self) -> list[bytes]:
        """Return the records added and not converted yet, and forget them."""
        taken, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return taken

    def convert(self, records: Sequence[bytes]) -> None:
        """Convert records, those of one call of `taken`."""
        if not records:
            return
        batch, foreign = batch_of(records, self._labels)
        self.foreign += foreign
        number = len(self._batches)
        self._batches.append(batch)
        for place, record in enumerate(batch.records):
            name = (record.collection, record.fingerprint, record.window_start)
            versions = self._found.setdefault(name, {})
            parts = versions.setdefault((record.revision, record.final), {})
            parts[record.part] = (number, place)

    def table(self, *, other: bool) -> Any:
        """Return a pyarrow.Table by `estimate_schema`, by collection and window; values as in the records.

        Parameters
        ----------
        other : whether the last row of a window is of the reports in none of its values, where it has one.
        """
        self.convert(self.taken())
        whole = {name: self._newest(versions) for name, versions in sorted(self._found.items())}
        chosen = [places for places in whole.values() if places]
        pa = arrow("a table of estimates")
        table = self._rows([place for places in chosen for place in places])
        if not other:
            return table
        last = [self._record(places[-1]) for places in chosen]
        rest = _other_rows(last)
        lengths = [sum(self._length(place) for place in places) for places in chosen]
        windows = np.arange(len(chosen))
        with_rest = windows[[each.other is not None for each in last]]
        order = np.argsort(np.concatenate([np.repeat(windows, lengths), with_rest]), kind="stable")
        return pa.concat_tables([table, rest]).unify_dictionaries().take(order) if len(rest) else table

    def withdrawn(self) -> dict[TableWindow, TableRevision]:
        """Return the windows whose newest estimate has no reports any more, with its revision."""
        self.convert(self.taken())
        newest = [places[0] for versions in self._found.values() if (places := self._newest(versions))]
        records = [self._record(place) for place in newest]
        return {
            (each.fingerprint, each.window_start * MICROSECONDS): (each.revision, each.final)
            for each in records
            if not each.reports
        }

    def _record(self, place: BatchPlace) -> EstimateHead:
        return self._batches[place[0]].records[place[1]]

    def unfinished(self) -> "NewestEstimates":
        """Return a collection with those estimates alone of which parts are missing, to go on with."""
        self.convert(self.taken())
        rest = NewestEstimates(needs_all_parts=self._needs_all_parts)
        for versions in self._found.values():
            for parts in versions.values():
                batch, place = next(iter(parts.values()))
                if len(parts) < self._batches[batch].records[place].parts:
                    for number, each in parts.values():
                        rest.add(self._batches[number].texts[each])
        return rest

    def _length(self, place: BatchPlace) -> int:
        return int(self._batches[place[0]].lengths[place[1]])

    def _newest(self, versions: dict[Version, dict[int, BatchPlace]]) -> list[BatchPlace]:
        for version in sorted(versions, reverse=True):
            parts = versions[version]
            places = [parts[part] for part in sorted(parts)]
            if len(places) == self._record(places[0]).parts or not self._needs_all_parts:
                return places
        return []

    def _rows(self, places: Sequence[BatchPlace]) -> Any:
        """Rows of the values of these records, in their order."""
        pa, schema = arrow("a table of estimates"), estimate_schema()
        records = [self._record(place) for place in places]
        lengths = np.concatenate([each.lengths for each in self._batches] or [np.empty(0, np.int64)])
        before = np.concatenate([[0], np.cumsum([len(each.records) for each in self._batches])]).astype(int)
        which = np.array([before[batch] + number for batch, number in places], np.int64)
        width = int(lengths[0]) if len(lengths) and bool((lengths == lengths[0]).all()) else 0
        is_in_order = len(which) == len(lengths) and bool((which == np.arange(len(which))).all())
        order = None if width or is_in_order else _rows_of(which, lengths)
        lengths = lengths[which]
        rows = int(lengths.sum())

        def ordered(columns: list[Any]) -> Any:
            column = np.concatenate(columns) if columns else np.empty(0)
            if is_in_order:
                return column
            # Whole records are copied far faster than single entries.
            return column[order] if order is not None else column.reshape(-1, width)[which].reshape(-1)

        texts = [*self._labels.texts]
        values = ordered([each.values for each in self._batches]).astype(np.int32)
        columns = _window_columns(records, lengths)
        columns["value"] = repeated_text(values, texts).cast(pa.string())
        for name in (*NUMBERS, "misfit_error", "low_all", "high_all", "unbiased", UPPER):
            columns[name] = _nullable(ordered([each.numbers[name] for each in self._batches]), pa.float64())
        for name in ("significant", "unreliable"):
            columns[name] = _nullable(ordered([each.flags[name] for each in self._batches]), pa.bool_())
        columns["is_other"] = pa.array(np.zeros(rows, bool))
        discovered = ordered([each.numbers["discovered_at"] for each in self._batches])
        moments = np.where(np.isnan(discovered), 0, discovered).astype(np.int64) * MICROSECONDS
        kind = schema.field("discovered_at").type
        columns["discovered_at"] = pa.array(moments, pa.int64(), mask=np.isnan(discovered)).cast(kind)
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _rows_of(which: Any, lengths: Any) -> Any:
    """Places of the rows of some records, int64, in the order of the records.

    Parameters
    ----------
    which : int64 (m,), places of records.
    lengths : int64 (n,), rows of every record.
    """
    firsts = np.concatenate([[0], lengths.cumsum()])
    chosen = lengths[which]
    before = np.concatenate([[0], chosen.cumsum()])[:-1]
    return np.repeat(firsts[which] - before, chosen) + np.arange(int(chosen.sum()))


def _nullable(column: Any, kind: Any) -> Any:
    """An Arrow array; NaN is null."""
    pa = arrow("a table of estimates")
    mask = np.isnan(column)
    if kind == pa.bool_():
        column = column == 1
    return pa.array(column, kind, mask=mask if mask.any() else None)


def _window_columns(records: Sequence[EstimateHead], lengths: Any) -> dict[str, Any]:
    """Columns of what is alike on all rows of a record."""
    pa, schema = arrow("a table of estimates"), estimate_schema()

    def repeated(figures: list[Any], kind: Any) -> Any:
        return pa.array(np.repeat(np.array(figures, kind), lengths))

    columns: dict[str, Any] = {}
    for name in ("collection", "fingerprint", "mechanism", "estimator"):
        known: dict[str, int] = {}
        codes = [known.setdefault(getattr(each, name), len(known)) for each in records]
        columns[name] = repeated_text(np.repeat(np.array(codes, np.int32), lengths), [*known])
    for name in ("window_start", "window_end"):
        moments = np.array([getattr(each, name) for each in records], np.int64) * MICROSECONDS
        columns[name] = pa.array(np.repeat(moments, lengths)).cast(schema.field(name).type)
    columns["reports"] = repeated([each.reports for each in records], np.int64)
    columns["revision"] = repeated([each.revision for each in records], np.int64)
    columns["final"] = repeated([each.final for each in records], bool)
    columns["epsilon"] = repeated([each.epsilon for each in records], np.float64)
    fits = np.array([each.diagnostics.get(FIT, np.nan) for each in records], np.float64)
    columns["fit_p_value"] = _nullable(np.repeat(fits, lengths), pa.float64())
    return columns


def _other_rows(records: Sequence[EstimateHead]) -> Any:
    """A row for each record that has a remainder."""
    pa, schema = arrow("a table of estimates"), estimate_schema()
    with_rest = [(each, each.other) for each in records if each.other is not None]
    records, rests = [each for each, _ in with_rest], [rest for _, rest in with_rest]
    columns = _window_columns(records, np.ones(len(records), np.int64))
    columns["value"] = pa.array([OTHER] * len(records), pa.string())
    for name in ("frequency", "std_error", "low", "high"):
        columns[name] = pa.array([getattr(rest, name) for rest in rests], pa.float64())
    shares = [rest.frequency * each.reports for each, rest in zip(records, rests, strict=True)]
    columns["count"] = pa.array(shares, pa.float64())
    columns["is_other"] = pa.array([True] * len(records), pa.bool_())
    for name in ("significant", *OPTIONAL, UPPER):
        columns[name] = pa.nulls(len(records), schema.field(name).type)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

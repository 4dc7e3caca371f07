"""Joins estimates published in numbered parts."""

from msgspec.structs import replace

from aggregator.records.estimate import EstimateRecord

MOST_UNFINISHED = 16  # an estimate whose first parts were not read never becomes whole

EstimateName = tuple[str, int, int, bool]


class Parts:
    """Parts of estimates that are not whole yet."""

    def __init__(self) -> None:
        self._found: dict[EstimateName, dict[int, EstimateRecord]] = {}

    def add(self, record: EstimateRecord) -> EstimateRecord | None:
        """Add a part; return the whole estimate if this was the last one missing."""
        name = (record.collection, record.window_start, record.revision, record.final)
        found = self._found.setdefault(name, {})
        found[record.part] = record
        if len(found) == record.parts:
            del self._found[name]
            return _join([found[part] for part in sorted(found)])
        while len(self._found) > MOST_UNFINISHED:
            del self._found[next(iter(self._found))]
        return None


def _join(parts: list[EstimateRecord]) -> EstimateRecord:
    """One record with the columns of all, in the order of the parts; `omitted` and `other` of the last."""
    return replace(
        parts[-1],
        part=1,
        parts=1,
        values=[value for part in parts for value in part.values],
        frequency=[share for part in parts for share in part.frequency],
        count=[number for part in parts for number in part.count],
        std_error=[error for part in parts for error in part.std_error],
        low=[end for part in parts for end in part.low],
        high=[end for part in parts for end in part.high],
        significant=[each for part in parts for each in part.significant],
    )

"""Joins estimates published in numbered parts."""

from msgspec.structs import replace

from deniable.aggregator.records.estimate import ConditionalShares, EstimateRecord, PairRecord

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
        misfit_error=[error for part in parts for error in part.misfit_error],
        unreliable=[each for part in parts for each in part.unreliable],
        low_all=[end for part in parts for end in part.low_all],
        high_all=[end for part in parts for end in part.high_all],
        unbiased=[share for part in parts for share in part.unbiased],
        discovered_at=[moment for part in parts for moment in part.discovered_at],
        pair=_joined_pair([part.pair for part in parts if part.pair is not None]),
    )


def _joined_pair(parts: list[PairRecord]) -> PairRecord | None:
    if not parts:
        return None
    return replace(
        parts[-1],
        first=[place for part in parts for place in part.first],
        second=[place for part in parts for place in part.second],
        given_first=_joined_shares([part.given_first for part in parts]),
        given_second=_joined_shares([part.given_second for part in parts]),
    )


def _joined_shares(parts: list[ConditionalShares]) -> ConditionalShares:
    return ConditionalShares(
        [each for part in parts for each in part.frequency],
        [each for part in parts for each in part.std_error],
        [each for part in parts for each in part.low],
        [each for part in parts for each in part.high],
    )

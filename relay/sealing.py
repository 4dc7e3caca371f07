"""From released reports to packs. Pure: the same release gives the same packs, byte for byte."""

from collections.abc import Iterator
from itertools import pairwise

from deniable.protocol import wire
from deniable.relay.keys import RelayKeys
from deniable.relay.windows import Release


def seal(release: Release, pack_reports: int, keys: RelayKeys) -> Iterator[wire.Pack]:
    """Cut a release into packs of about equal size, at most `pack_reports` reports each.

    Which reports share a pack is random, so a pack that workers reject takes away no particular values.
    """
    intake = release.intake
    size = wire.report_bytes(intake.mechanism, intake.width)
    most = min(pack_reports, (wire.MAX_RECORD_BYTES - wire.HEADER_BYTES) // size)
    count = -(-len(release.rows) // most)
    bounds = [len(release.rows) * each // count for each in range(count + 1)]
    for number, (first, end) in enumerate(pairwise(bounds)):
        rows = release.rows[first:end]
        yield wire.Pack(
            mechanism=intake.mechanism,
            cohort=release.cohort,
            fingerprint=intake.fingerprint,
            window_start=release.window_start,
            reports=end - first,
            width=intake.width,
            pack_id=keys.pack_id(release.context, number),
            payload=rows.tobytes(),
        )

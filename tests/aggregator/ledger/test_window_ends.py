"""Until when windows are closed at each record of a run: as one record after the other would tell."""

from itertools import accumulate

import numpy as np

from deniable.aggregator.ledger.window_ends import Closing, closed_over
from deniable.protocol.marker import MARKER, RelaysSent, encode_relays
from tests.support.aggregator.builders import RELAYS_KEY

WAIT_MS = 900
SENT = {2: RelaysSent(1, 3000, WAIT_MS), 4: RelaysSent(3, 4500, WAIT_MS), 5: RelaysSent(2, 9000, 0)}
APPENDED_MS = [1000, 3500, 3400, 4000, 4600, 4700, 9999, 20_000]


def test_a_run_closes_windows_when_its_records_do() -> None:
    records = [
        encode_relays(RELAYS_KEY, SENT[number]) if number in SENT else MARKER
        for number in range(len(APPENDED_MS))
    ]
    watermarks_ms = np.array(list(accumulate(APPENDED_MS, max)))
    lengths = np.array([len(each) for each in records])
    begun = Closing(RELAYS_KEY)
    closed_ms, closing = closed_over(lengths, records.__getitem__, watermarks_ms, begun)
    one_by_one, after = [0], begun
    for record, watermark_ms in zip(records, watermarks_ms.tolist(), strict=True):
        after = after.after(record)
        one_by_one.append(max(one_by_one[-1], after.closed_until_ms(watermark_ms)))
    assert closed_ms.tolist() == one_by_one[1:] == [1000, 3500, 3500, 3500, 4500, 4500, 9099, 19_100]
    assert closing == after == Closing(RELAYS_KEY, *SENT[4])

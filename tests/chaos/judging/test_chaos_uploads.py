"""The recount of uploads against logs judged by hand, and the figures of a verdict on the path of devices."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deniable.config.file import Configuration
from deniable.relay.service.outcomes import Totals
from tests.chaos.judging.path_verdict import figures
from tests.chaos.judging.recount import Counted, Recount, count_all
from tests.chaos.judging.uploads import FRAME, Uploaded, UploadJudge
from tests.chaos.load.drafts import Draft, Drafts, Group
from tests.chaos.processes.collection_setup import PATH_HEAD, write

DELIVERY = 10
CLOSES = 5 + 4  # seconds after the start of a window


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    file, grace_seconds = tmp_path / "deniable.yaml", DELIVERY + 4
    return write(file, "127.0.0.1:1", "test-", 1, PATH_HEAD, grace_seconds, delivery=DELIVERY)


def drafts_of(configuration: Configuration) -> list[Draft]:
    """Return uploads of one window without invalid groups."""
    drafts = Drafts(*configuration.collections, 1)
    drawn = [drafts.draw() for _ in range(60)]
    start = drawn[0].window_start
    return [
        each for each in drawn if each.window_start == start and not any(g.cohort == 9 for g in each.groups)
    ]


def frame(*drafts: Draft) -> bytes:
    lengths = b"".join(len(each.body).to_bytes(4, "little") for each in drafts)
    return FRAME.pack(b"DNBF", 1, len(drafts)) + lengths + b"".join(each.body for each in drafts)


def judge_of(configuration: Configuration) -> tuple[Uploaded, UploadJudge]:
    found = Uploaded()
    return found, UploadJudge(found, configuration.by_fingerprint(), DELIVERY)


def test_an_upload_counts_once_until_its_window_closes(configuration: Configuration) -> None:
    """A window of 5 s takes uploads for 4 s more, by the highest append time, markers' included."""
    one, two, three, *_ = (replace(each, groups=each.groups[:1]) for each in drafts_of(configuration))
    found, judge = judge_of(configuration)
    closes_ms = (one.window_start + CLOSES) * 1000
    judge.take(closes_ms - 2000, frame(one, two, one))
    judge.take(closes_ms, frame(two))
    assert (found.accepted, found.rejected) == (2, {"duplicate": 2})
    judge.take(closes_ms + 1, b"DNBC\x01")
    judge.take(closes_ms - 500, frame(three, one))
    assert (found.accepted, found.rejected) == (2, {"duplicate": 2, "too_late": 2})
    assert found.ids == {one.upload_id, two.upload_id, three.upload_id}


def test_buckets_and_bits_are_those_of_the_uploads(configuration: Configuration) -> None:
    drafts, known = drafts_of(configuration), configuration.by_fingerprint()
    found, judge = judge_of(configuration)
    judge.take(drafts[0].window_start * 1000, frame(*drafts))
    each, bits = configuration.collections
    cells = count_all(found.rows, known)
    counts = cells[each.fingerprint, drafts[0].window_start, 0].counts
    buckets = [int.from_bytes(draft.groups[0].rows, "little") for draft in drafts]
    assert (np.flatnonzero(counts).tolist(), counts.max()) == (buckets, 1)
    ones = sum(
        int.from_bytes(draft.groups[1].rows, "little").bit_count() for draft in drafts if draft.groups[1:]
    )
    assert sum(cell.counts.sum() for key, cell in cells.items() if key[0] == bits.fingerprint) == ones > 0


def cell(**counts: int) -> Counted:
    data = np.zeros(9, np.int64)
    for name, number in counts.items():
        data[int(name[1:])] = number
    return Counted(data, int(data.sum()), 1)


def draft(bucket: int, is_told: bool = True) -> Draft:
    return Draft(bytes((bucket,)), (Group(1, 1, 0, 0, 9, bytes((bucket, 0))),), is_told)


def test_each_upload_is_counted_rejected_or_lost() -> None:
    """Bucket 1 is counted, 2 twice, 3 nowhere, 4 too late, 5 rejected by a relay; 6 belongs to no upload."""
    drawn = [*map(draft, range(1, 6)), draft(7, is_told=False), draft(8)]
    uploaded = Uploaded({one.upload_id for one in drawn[:5]}, accepted=4, rejected=Counter(too_late=1))
    packs = Recount({(1, 0, 0): cell(b1=1, b2=2, b6=1)}, late={(1, 0, 0): cell(b4=1)})
    found = figures(
        *(drawn, uploaded, Totals(4, {"too_late": 2}), packs),
        *({(1, 0, 0): cell(b1=1, b2=1, b3=1, b4=1, b6=1)}, 1),
    )
    assert found == {
        **{"uploads": 7, "told": 6, "counted": 1, "refused": 2, "lost": 2, "twice": 2, "bits_off": 0},
        "outcomes_off": 1,
    }


def test_bits_are_compared_by_cohort() -> None:
    accepted = {(2, 0, 0): cell(b1=5, b2=3), (2, 0, 1): cell(b1=2)}
    packs = Recount({(2, 0, 0): cell(b1=4, b2=3)}, late={(2, 0, 0): cell(b1=1)})
    assert figures([], Uploaded(), Totals(), packs, accepted, 1)["bits_off"] == 2
    packs.cells[2, 0, 1] = cell(b1=1, b3=1)
    assert figures([], Uploaded(), Totals(), packs, accepted, 1)["bits_off"] == 2


def test_buckets_of_a_window_are_all_different(configuration: Configuration) -> None:
    drafts = Drafts(*configuration.collections, 0)
    used = Counter((each.window_start, each.groups[0].rows) for each in (drafts.draw() for _ in range(500)))
    wasted = drafts.waste()
    assert set(used.values()) == {1}
    assert (wasted.window_start, wasted.groups[0].rows) not in used
    assert wasted not in drafts.drawn

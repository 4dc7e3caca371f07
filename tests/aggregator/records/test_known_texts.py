"""Which texts a window lists, when each was discovered, and the row that stores it."""

from functools import partial

import msgspec

from deniable.aggregator.records.known_texts import (
    MOST_TEXTS,
    KnownText,
    KnownTexts,
    decode_known_texts,
    encode_known_texts,
)
from tests.support.messages import PinMessages

KEPT = 3 * 60  # seconds, of looks at windows of a minute


def known_after(*looks: tuple[int, list[bytes]]) -> KnownTexts:
    """What is known after looks at the windows that end then."""
    known = KnownTexts()
    for end, prefixes in looks:
        known = known.after_look(prefixes, end, KEPT)
    return known


def listed(known: KnownTexts, start: int) -> dict[bytes, int]:
    return {each.prefix: each.discovered_at for each in known.listed(start, KEPT)}


def test_a_text_is_listed_from_the_next_window_on() -> None:
    known = known_after((60, [b"tea"]))
    assert listed(known, 0) == {}
    assert listed(known, 60) == {b"tea": 60}


def test_a_text_stays_for_as_many_windows_as_a_look_covers() -> None:
    known = known_after((60, [b"tea"]))
    assert [bool(listed(known, start)) for start in (60, 120, 180, 240)] == [True, True, True, False]


def test_a_text_found_again_keeps_its_moment() -> None:
    known = known_after((60, [b"tea"]), (120, []), (180, [b"milk", b"tea"]))
    assert listed(known, 180) == {b"milk": 180, b"tea": 60}
    assert listed(known, 300) == {b"milk": 180, b"tea": 60}


def test_a_text_that_was_forgotten_is_discovered_anew() -> None:
    known = known_after((60, [b"tea"]), *((end, []) for end in (120, 180, 240)), (300, [b"tea"]))
    assert listed(known, 300) == {b"tea": 300}


def test_an_earlier_window_lists_what_was_known_before_it() -> None:
    known = known_after((60, [b"tea"]), (120, [b"tea", b"milk"]))
    assert listed(known, 60) == {b"tea": 60}


def test_number_of_texts_is_bounded_and_the_last_look_comes_first() -> None:
    known = known_after((60, [b"old"]), (120, [b"%d" % each for each in range(MOST_TEXTS)]))
    assert len(known.texts) == MOST_TEXTS
    assert b"old" not in listed(known, 120)


def test_row_holds_any_bytes_and_stays_below_a_mebibyte() -> None:
    known = known_after((60, [bytes([each % 256]) * 255 + b"%d" % each for each in range(MOST_TEXTS)]))
    data = encode_known_texts(known)
    assert decode_known_texts(data) == known
    assert len(data) < 1_000_000
    cut = KnownTexts(60, (KnownText("日".encode()[:2], 60, 60),))
    assert decode_known_texts(encode_known_texts(cut)) == cut


def test_messages(pin_messages: PinMessages) -> None:
    rows = {
        "no row": b"",
        "a row of version 2": b"\x02{}",
        "a row that is cut": b"\x01[",
        "a text without its moments": b"\x01" + msgspec.json.encode({"texts": [{"prefix": "?"}]}),
    }
    pin_messages({what: partial(decode_known_texts, row) for what, row in rows.items()})

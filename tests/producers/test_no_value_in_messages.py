"""No pinned message shows what was given as a value, a client or a password."""

from tests.support.messages import TESTS

CANARIES = ("7391", "5519", "hunter2", "horse", "p@ss")


def test_pinned_messages_have_no_canary() -> None:
    text = (TESTS / "producers" / "messages.txt").read_text(encoding="utf-8")
    assert [each for each in CANARIES if each in text] == []

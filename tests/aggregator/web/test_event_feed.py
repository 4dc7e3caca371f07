"""The feed gives each reader the frames newer than its last one, and stores nothing per reader."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.web.event_feed import EventFeed

SUBJECTS = st.lists(st.tuples(st.sampled_from(["estimate", "status"]), st.integers(0, 3)), max_size=20)


@given(SUBJECTS, st.integers(0, 20))
def test_reader_gets_each_newest_frame_once_in_order(subjects: list[tuple[str, int]], read: int) -> None:
    """After any earlier read, the reader has the newest frame of each subject, none twice."""
    feed, got = EventFeed(), []
    for count, subject in enumerate(subjects):
        feed.put(subject, count)
        if count == read:
            got = list(feed.since(0))
    got += feed.since(got[-1].number if got else 0)
    numbers = [frame.number for frame in got]
    assert numbers == sorted(set(numbers))
    newest = {subject: count for count, subject in enumerate(subjects)}
    frames = {frame.number - 1: frame.data for frame in got}
    for (event, _), count in newest.items():
        assert frames[count] == f"event: {event}\ndata: {count}\n\n".encode()


def test_line_ends_in_text_are_escaped() -> None:
    feed = EventFeed()
    feed.put(("status",), {"reason": "a\n\nevent: estimate\r\ndata: b"})
    (frame,) = feed.since(0)
    assert frame.data.count(b"\n") == 3
    assert b"\r" not in frame.data


def test_forgotten_frames_are_not_sent() -> None:
    feed = EventFeed()
    for window in range(3):
        feed.put(("window", "fruit", window), window)
    for window in (0, 2):
        feed.forget(("window", "fruit", window))
    assert [frame.data for frame in feed.since(0)] == [b"event: window\ndata: 1\n\n"]


def test_reader_waits_for_a_frame_or_the_end() -> None:
    async def run() -> None:
        feed = EventFeed()
        waiting = asyncio.create_task(feed.changed(0))
        await asyncio.sleep(0)
        assert not waiting.done()
        feed.put(("status",), None)
        await waiting
        await feed.changed(0)  # there is a newer frame already
        waiting = asyncio.create_task(feed.changed(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        feed.close()
        await waiting

    asyncio.run(asyncio.wait_for(run(), 10))

"""The feed gives each reader what is newer than what it has, and keeps nothing for anybody."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from aggregator.web.event_feed import EventFeed

MATTERS = st.lists(st.tuples(st.sampled_from(["estimate", "status"]), st.integers(0, 3)), max_size=20)


@given(MATTERS, st.integers(0, 20))
def test_reader_gets_the_newest_frame_of_each_matter_once_and_in_order(
    matters: list[tuple[str, int]], read: int
) -> None:
    """Whatever was read before, what is read in the end is the newest of all, and nothing twice."""
    feed, got = EventFeed(), []
    for count, matter in enumerate(matters):
        feed.put(matter, count)
        if count == read:
            got = list(feed.since(0))
    got += feed.since(got[-1].number if got else 0)
    numbers = [frame.number for frame in got]
    assert numbers == sorted(set(numbers))
    newest = {matter: count for count, matter in enumerate(matters)}
    frames = {frame.number - 1: frame.data for frame in got}
    for (event, _), count in newest.items():
        assert frames[count] == f"event: {event}\ndata: {count}\n\n".encode()


def test_text_with_line_ends_is_one_line_of_data() -> None:
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


def test_a_reader_waits_for_news_or_the_end() -> None:
    async def run() -> None:
        feed = EventFeed()
        waiting = asyncio.create_task(feed.changed(0))
        await asyncio.sleep(0)
        assert not waiting.done()
        feed.put(("status",), None)
        await waiting
        await feed.changed(0)  # there is news already
        waiting = asyncio.create_task(feed.changed(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        feed.close()
        await waiting

    asyncio.run(asyncio.wait_for(run(), 10))

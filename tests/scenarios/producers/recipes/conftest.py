"""A folder with the page's files, a topic of its own, and the reports that arrived there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deniable import open_producer
from deniable.protocol.wire import decode
from tests.support.producers.topics import make_topic, read
from tests.support.producers.web.recipes import write_files

PARTITIONS = 4


@pytest.fixture
def folder(broker: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's files; their environment names the broker and a new topic."""
    write_files(tmp_path)
    monkeypatch.setenv("DENIABLE_KAFKA__BOOTSTRAP_SERVERS", broker)
    monkeypatch.setenv("DENIABLE_KAFKA__TOPIC_PREFIX", topic_prefix)
    with make_topic(broker, f"{topic_prefix}reports", PARTITIONS):
        yield tmp_path


@pytest.fixture
def arrived(broker: str, topic_prefix: str, folder: Path) -> Callable[[], int]:
    """Send what is stored in the folder, and count all reports of the topic.

    A pack whose acknowledgement died with its worker is sent again under the same id, and counts once.
    """

    def count() -> int:
        with open_producer(folder / "deniable.yaml") as last:
            last.flush()
        packs = [decode(record.value) for record in read(broker, f"{topic_prefix}reports")]
        return sum({pack.pack_id: pack.reports for pack in packs}.values())

    return count

"""What the outbox holds for each destination: packs for Kafka, uploads for an edge.

Rule: bytes go only to the destination that they were made for. Kafka may have a pack although its
acknowledgement was lost; a relay would make new packs of the same reports, and they would be counted twice.
Buffers belong to no destination, since nothing of them was sent.
"""

from typing import Protocol

from deniable.producers.storage.store import StoreError
from deniable.producers.transport.edge.upload_of_pack import MOST_REPORT_BYTES, upload_of
from deniable.producers.transport.packs import OutgoingPack
from deniable.protocol.uploads import upload
from deniable.protocol.uploads.upload import MAX_UPLOAD_BYTES, UploadError, decode_upload
from deniable.protocol.wire import (
    HEADER_BYTES,
    MAGIC,
    MAX_RECORD_BYTES,
    UNSUPPORTED_VERSION,
    Pack,
    WireError,
    decode,
    encode,
    partition_of,
)

MOST_BATCH_BYTES = 1_048_588  # Kafka's default; the largest pack fits


class Destination(Protocol):
    """Where packs go."""

    @property
    def most_report_bytes(self) -> int:
        """The most bytes of reports in one pack."""

    def stored(self, pack: Pack) -> bytes:
        """Encode a pack for the outbox, as it will be sent."""

    def outgoing(self, number: int, record: bytes) -> OutgoingPack:
        """Read a pack of the outbox; StoreError if it cannot be sent to this destination."""

    def too_large(self, size: int) -> str:
        """Say that a pack of `size` bytes was refused for its size, and the remedy."""


class ToKafka:
    """Packs go to the topic `reports` of `partitions` partitions."""

    most_report_bytes = MAX_RECORD_BYTES - HEADER_BYTES

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def stored(self, pack: Pack) -> bytes:
        """Encode a pack as a record."""
        return encode(pack)

    def outgoing(self, number: int, record: bytes) -> OutgoingPack:
        """Read a record; StoreError if it is damaged, of a later version, or an upload for an edge."""
        if record[:4] == upload.MAGIC:
            raise StoreError(
                "it was made for an edge, which may have it; set producer.deliver to that edge until it is "
                "sent"
            )
        pack = unpacked(record)
        return OutgoingPack(
            number,
            partition_of(pack.pack_id, self._partitions),
            pack.fingerprint,
            pack.window_start,
            pack.reports,
            record,
        )

    def too_large(self, size: int) -> str:
        """Name the topic's limit."""
        return (
            f"the broker accepts no record of {size} bytes; set max.message.bytes of the topic to at least "
            f"{MOST_BATCH_BYTES}, then restart this producer"
        )


class ToEdge:
    """Packs go to an edge, each as an upload of one group."""

    most_report_bytes = MOST_REPORT_BYTES

    def stored(self, pack: Pack) -> bytes:
        """Encode a pack as an upload."""
        return upload_of(pack)

    def outgoing(self, number: int, record: bytes) -> OutgoingPack:
        """Read an upload; StoreError if it is damaged, of a later version, or a pack for Kafka."""
        if record[:4] == MAGIC:
            raise StoreError(
                "it was made for Kafka, which may have it, so an edge could count it twice; set "
                "producer.deliver to kafka until it is sent"
            )
        try:
            (group,) = decode_upload(record).groups
        except UploadError as error:
            raise _unreadable(error.reason) from None
        except ValueError:  # another number of groups: no version has written that
            raise _unreadable(UNSUPPORTED_VERSION) from None
        return OutgoingPack(number, 0, group.fingerprint, group.window_start, group.reports, record)

    def too_large(self, size: int) -> str:
        """Name the limit of what is in front of the edge."""
        return (
            f"{size} bytes are too large for the edge, or for a proxy in front of it; let the proxy pass "
            f"bodies of {MAX_UPLOAD_BYTES} bytes, then restart this producer"
        )


def unpacked(record: bytes) -> Pack:
    """Decode a pack or buffer from the store.

    Raises
    ------
    StoreError if it is damaged, or of a later version.
    """
    try:
        return decode(record)
    except WireError as error:
        raise _unreadable(error.reason) from None


def _unreadable(reason: str) -> StoreError:
    if reason == UNSUPPORTED_VERSION:
        return StoreError(
            f"a record of the store is of a later version, or damaged: {reason}; use the version of deniable "
            "that wrote it, or restore a copy"
        )
    return StoreError(f"a record of the store is damaged: {reason}; restore a copy")

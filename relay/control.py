"""Control records: what relays append to `uploads`, so that the log alone decides how it is packed.

A *marker* ends a batch. *Settings* end a batch too, and apply from then on; relays with other files than
the log's settings work by the log. Both are authenticated, because edges can write to the topic as well:

    0  4  magic "DNBC"    4  1  version = 1    5  1  kind (1 marker, 2 settings)    6 16  code    22 …  JSON

The code covers the partition, the kind and the JSON. A copied marker only ends one more batch, and copied
settings change nothing, because only a higher revision does.
"""

import msgspec

from deniable.estimators.errors import DeniableError
from deniable.protocol.wire import report_bytes
from deniable.relay.keys import MAC_BYTES, RelayKeys, context_of

MAGIC = b"DNBC"
VERSION = 1
MARKER = 1
SETTINGS = 2
FOLD_VERSION = 1  # of what the packs of a log are
_HEAD_BYTES = len(MAGIC) + 2
_BODY_AT = _HEAD_BYTES + MAC_BYTES


class ControlError(DeniableError, RuntimeError):
    """A relay cannot work with a partition of `uploads`; the message says why, and the remedy."""

    exit_status = 3


class Intake(msgspec.Struct, frozen=True):
    """What uploads of one collection must match, and until when they are taken.

    Parameters
    ----------
    fingerprint, mechanism, width, cohorts, window_seconds : of the collection.
    grace_seconds : time after a window's end in which uploads still count, in log append time; less than the
        grace of the workers by what a relay needs to send its packs.
    """

    fingerprint: int
    mechanism: int
    width: int
    cohorts: int
    window_seconds: int
    grace_seconds: int


class RelaySettings(msgspec.Struct, frozen=True):
    """All that the packs of a log depend on beside the log and the key.

    Parameters
    ----------
    revision : of the collection file; only a higher one replaces settings.
    partitions : of `uploads`.
    batch_reports : uploaded reports after which a batch ends, >= 1.
    shuffle_reports : reports of a collection, window and cohort that are held back until the window's end.
    pack_reports : of a full pack, >= 1; fewer if a record would be too large.
    window_uploads : upload ids kept per window, about; beyond, uploads are rejected.
    key_check : of the relays' secret.
    collections : of the file.
    retired : fingerprints of collections that ended, ascending. They do not come back: a relay that begins to
        read after their end could not tell which of their uploads counted before.
    fold_version : see FOLD_VERSION.
    """

    revision: int
    partitions: int
    batch_reports: int
    shuffle_reports: int
    pack_reports: int
    window_uploads: int
    key_check: bytes
    collections: tuple[Intake, ...]
    retired: tuple[int, ...] = ()
    fold_version: int = FOLD_VERSION

    def __post_init__(self) -> None:
        if min(self.partitions, self.batch_reports, self.pack_reports) < 1 or self.shuffle_reports < 0:
            raise ValueError(
                "partitions, batch_reports and pack_reports must be at least 1, shuffle_reports at least 0"
            )
        for each in self.collections:
            if (
                each.window_seconds < 1
                or each.grace_seconds < 0
                or not report_bytes(each.mechanism, each.width)
            ):
                raise ValueError(f"collection {each.fingerprint:016x} has no valid width, window or grace")

    def follow(self, former: "RelaySettings") -> bool:
        """Whether they may replace the former ones: newer, of the same partitions, and nothing comes back."""
        ended = {*former.retired, *(each.fingerprint for each in former.collections)}
        ended -= {each.fingerprint for each in self.collections}
        returned = {each.fingerprint for each in self.collections} & {*former.retired, *self.retired}
        same = self.partitions == former.partitions
        return self.revision > former.revision and same and ended <= {*self.retired} and not returned


def is_control(record: bytes) -> bool:
    """Whether a record of `uploads` claims to be from a relay."""
    return record[:4] == MAGIC


def encode_marker(keys: RelayKeys, partition: int) -> bytes:
    """Encode a marker for this partition."""
    return _encode(keys, partition, MARKER, b"")


def encode_settings(keys: RelayKeys, partition: int, settings: RelaySettings) -> bytes:
    """Encode settings for this partition."""
    return _encode(keys, partition, SETTINGS, msgspec.json.encode(settings))


def decode_control(keys: RelayKeys, partition: int, record: bytes) -> RelaySettings | None:
    """Decode a control record; None is a marker.

    Raises
    ------
    ValueError if no relay with these keys wrote it for this partition.
    ControlError if a newer relay wrote it.
    """
    head, body = record[:_HEAD_BYTES], record[_BODY_AT:]
    if len(record) < _BODY_AT or record[_HEAD_BYTES:_BODY_AT] != _code(keys, partition, head, body):
        raise ValueError("not authentic")
    return read_control(record)


def read_control(record: bytes) -> RelaySettings | None:
    """Decode a control record of any partition without asking who wrote it; None is a marker.

    Raises
    ------
    ValueError if it holds no settings; ControlError if a newer relay wrote it.
    """
    if len(record) < _BODY_AT:
        raise ValueError("damaged")
    if record[4] != VERSION:
        raise ControlError(f"uploads: record version must be {VERSION}, got {record[4]}; upgrade this relay")
    if record[5] == MARKER:
        return None
    settings = msgspec.json.decode(record[_BODY_AT:], type=RelaySettings)
    if settings.fold_version != FOLD_VERSION:
        raise ControlError(
            f"uploads: fold version must be {FOLD_VERSION}, got {settings.fold_version}; upgrade this relay"
        )
    return settings


def is_settings(record: bytes) -> bool:
    """Whether a control record, authentic or not, claims to hold settings."""
    return len(record) > _BODY_AT and record[5] == SETTINGS


def _encode(keys: RelayKeys, partition: int, kind: int, body: bytes) -> bytes:
    head = MAGIC + bytes((VERSION, kind))
    return head + _code(keys, partition, head, body) + body


def _code(keys: RelayKeys, partition: int, head: bytes, body: bytes) -> bytes:
    return keys.control_mac(context_of(partition) + head + body)

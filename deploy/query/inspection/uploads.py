"""Decode records of `uploads` and `rejected-uploads`.

Rule: which reports one device uploaded together is shown only on request, as the reports themselves are; a
frame's line has sums over all its uploads.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.deploy.query.inspection.packs import MECHANISMS
from deniable.deploy.query.inspection.rows import Fields, Inspection
from deniable.protocol import wire
from deniable.protocol.uploads.frame import decode_frame
from deniable.protocol.uploads.upload import Upload, UploadError, UploadGroup, decode_upload
from deniable.relay.acceptance import REASONS
from deniable.relay.control import ControlError, RelaySettings, is_control, read_control
from deniable.relay.service.outcomes import OutcomeRecordError, decode_outcomes

FINGERPRINT_BYTES = 8


def upload_record(inspection: Inspection, record: KafkaRecord) -> Fields:
    """Decode a frame of uploads, or a relay's control record; UploadError or ValueError if it is neither.

    Whether a relay wrote a control record is not checked: that takes the relays' secret.
    """
    value = record.value or b""
    if is_control(value):
        try:
            settings = read_control(value)
        except ControlError:
            raise UploadError(wire.UNSUPPORTED_VERSION) from None
        return {"kind": "marker"} if settings is None else _settings(inspection, settings)
    good, damaged = _uploads(value)
    shown: Fields = {"kind": "frame", "uploads": len(good) + damaged.total()}
    if damaged:
        shown["damaged"] = dict(damaged)
    if inspection.payload:
        return shown | {"content": [_upload(inspection, each) for each in good]}
    return shown | {"groups": list(_sums(inspection, good))}


def outcomes_record(inspection: Inspection, record: KafkaRecord) -> Fields:
    """Decode what became of a batch of uploads; OutcomeRecordError or ValueError if it is none."""
    outcomes = decode_outcomes(record.value)
    if any(each.reason not in REASONS for each in outcomes.rejected):
        raise OutcomeRecordError("a reason is unknown")
    return {
        "kind": "outcomes",
        "upload_partition": outcomes.partition,
        "begin": outcomes.begin,
        "end": outcomes.end,
        "accepted": [
            {**_named(inspection, each.fingerprint), "window_start": each.window, "reports": each.reports}
            for each in outcomes.accepted
        ],
        "rejected": [
            {
                "reason": each.reason,
                "groups": each.groups,
                "reports": each.reports,
                **({} if each.fingerprint is None else _named(inspection, each.fingerprint)),
                **({} if each.window is None else {"window_start": each.window}),
            }
            for each in outcomes.rejected
        ],
    }


def _named(inspection: Inspection, fingerprint: str) -> Fields:
    number = bytes.fromhex(fingerprint)
    if len(number) != FINGERPRINT_BYTES:
        raise OutcomeRecordError("a fingerprint must have 16 hexadecimal digits")
    return inspection.named(int.from_bytes(number))


def _settings(inspection: Inspection, settings: RelaySettings) -> Fields:
    numbers = ("batch_reports", "shuffle_reports", "pack_reports", "window_uploads")
    return {
        "kind": "settings",
        "revision": settings.revision,
        "partitions": settings.partitions,
        **{name: getattr(settings, name) for name in numbers},
        "secret_check": settings.key_check.hex(),
        "collections": [
            {
                **inspection.named(each.fingerprint),
                **{name: msgspec.to_builtins(each)[name] for name in ("window_seconds", "grace_seconds")},
            }
            for each in settings.collections
        ],
        "retired": [inspection.named(each) for each in settings.retired],
    }


def _uploads(value: bytes) -> tuple[list[Upload], Counter[str]]:
    """Return the uploads of a frame, and how many are damaged, by reason."""
    good: list[Upload] = []
    damaged: Counter[str] = Counter()
    for each in decode_frame(value):
        try:
            good.append(decode_upload(each))
        except UploadError as error:
            damaged[error.reason] += 1
    return good, damaged


def _sums(inspection: Inspection, uploads: Iterable[Upload]) -> Iterator[Fields]:
    """Yield groups and reports of each collection and window."""
    groups: Counter[tuple[int, int]] = Counter()
    reports: Counter[tuple[int, int]] = Counter()
    for upload in uploads:
        for group in upload.groups:
            window = group.fingerprint, group.window_start
            groups[window] += 1
            reports[window] += group.reports
    for window in sorted(groups):
        yield {
            **inspection.named(window[0]),
            "window_start": window[1],
            "groups": groups[window],
            "reports": reports[window],
        }


def _upload(inspection: Inspection, upload: Upload) -> Fields:
    return {
        "upload_id": upload.upload_id.hex(),
        "groups": [_group(inspection, upload.upload_id, each) for each in upload.groups],
    }


def _group(inspection: Inspection, upload_id: bytes, group: UploadGroup) -> Fields:
    numbers = {name: getattr(group, name) for name in ("cohort", "window_start", "reports", "width")}
    pack = wire.Pack(
        **numbers,
        mechanism=group.mechanism,
        fingerprint=group.fingerprint,
        pack_id=upload_id,
        payload=bytes(group.rows),
    )
    return {
        **inspection.named(group.fingerprint),
        "mechanism": MECHANISMS[group.mechanism],
        **numbers,
        "payload": wire.shown_reports(pack),
    }

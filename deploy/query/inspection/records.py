"""Decode one record of our topics: a line of `deniable inspect`.

Rule: of a record that cannot be decoded, only place, size and problem are shown; the bits of reports are
shown only on request.
"""

import json
from collections.abc import Callable
from typing import Literal

import msgspec

from deniable.aggregator.ledger.acceptance import OTHER_PARAMETERS, REASONS
from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.records.estimate import decode_estimate
from deniable.aggregator.records.final_window import decode_page
from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.deploy.query.inspection.packs import pack_record
from deniable.deploy.query.inspection.rows import Fields, Inspection, counts_row, instant, state_row
from deniable.deploy.query.inspection.uploads import outcomes_record, upload_record
from deniable.protocol import wire
from deniable.protocol.publication import decode_publication
from deniable.protocol.uploads.upload import UploadError
from deniable.relay.service.outcomes import OutcomeRecordError

COLUMNS = ("values", "frequency", "count", "std_error", "low", "high", "significant")


class _Rejected(msgspec.Struct):
    version: Literal[1]
    partition: int
    offset: int
    reason: str
    detail: str = ""
    collection: str = ""


def fields_of(topic: str, inspection: Inspection, partition: int, record: KafkaRecord) -> Fields:
    """Return place, time, kind and contents of a record; for a damaged or foreign one, what is wrong.

    Parameters
    ----------
    topic : one of READERS.
    inspection : options of the output.
    partition, record : its partition, and the record.
    """
    place: Fields = {"partition": partition, "offset": record.offset, "time": instant(record.timestamp)}
    try:
        return place | READERS[topic](inspection, record)
    except (wire.WireError, UploadError, OutcomeRecordError, RowError, msgspec.DecodeError) as error:
        problem = str(error)
    except (ValueError, OverflowError, RecursionError):  # their messages may quote the record
        problem = "it cannot be decoded"
    size = len(record.key or b"") + len(record.value or b"")
    return place | {"kind": "unreadable", "problem": problem, "bytes": size}


def _rejected(_: Inspection, record: KafkaRecord) -> Fields:
    rejected = msgspec.json.decode(record.value or b"", type=_Rejected)
    if rejected.reason not in REASONS:
        raise RowError("its reason is unknown")
    shown: Fields = {
        "kind": "rejected",
        "report_partition": rejected.partition,
        "report_offset": rejected.offset,
        "reason": rejected.reason,
    }
    if rejected.detail != OTHER_PARAMETERS:
        return shown
    return shown | {"detail": OTHER_PARAMETERS, "collection": rejected.collection}


def _published(_: Inspection, record: KafkaRecord) -> Fields:
    if record.value is None:
        return {"kind": "collection", "name": (record.key or b"").decode(), "deleted": True}
    return {"kind": "collection", **msgspec.to_builtins(decode_publication(record.value))}


def _estimate(inspection: Inspection, record: KafkaRecord) -> Fields:
    estimate = decode_estimate(record.value or b"")
    shown: Fields = {"kind": "estimate", **msgspec.to_builtins(estimate)}
    if not inspection.payload:
        for column in COLUMNS:
            del shown[column]
        shown |= {"values": len(estimate.values), "significant": sum(estimate.significant)}
    return shown


def _window(inspection: Inspection, record: KafkaRecord) -> Fields:
    page = decode_page(record.key or b"", record.value or b"")
    shown: Fields = {
        "kind": "window",
        "collection": page.name,
        "fingerprint": f"{page.fingerprint:016x}",
        "window_start": page.window_start,
        "window_seconds": page.window_seconds,
        "page": page.number + 1,
        "pages": page.pages,
        "packs": page.packs,
        "rejected": page.rejected,
        "cohorts": page.cohorts,
        "counters": page.counters.size,
    }
    if not inspection.payload:
        return shown
    return shown | {"cohort_sizes": page.cohort_sizes.tolist(), "counts": page.counters.tolist()}


READERS: dict[str, Callable[[Inspection, KafkaRecord], Fields]] = {
    "reports": pack_record,
    "counts": counts_row,
    "rejected": _rejected,
    "estimates": _estimate,
    "windows": _window,
    "state": state_row,
    "collections": _published,
    "uploads": upload_record,
    "rejected-uploads": outcomes_record,
}


def line_of(fields: Fields) -> str:
    """Return a line for people: time, partition:offset, kind, and the other fields."""
    rest = dict(fields)
    head = f"{rest.pop('time')} {rest.pop('partition')}:{rest.pop('offset')} {rest.pop('kind')}"
    return " ".join([head, *(f"{name}={_shown(value)}" for name, value in rest.items())])


def _shown(value: object) -> str:
    """Return a plain word unchanged, anything else as JSON: no control character reaches a terminal."""
    if isinstance(value, str) and value.isascii() and value.replace("-", "").isalnum():
        return value
    return json.dumps(value)

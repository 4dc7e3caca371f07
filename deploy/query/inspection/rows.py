"""Decode rows of `state` and `counts`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.acceptance import REASONS
from deniable.aggregator.ledger.terms import EVERY_COLLECTION
from deniable.aggregator.records.known_texts import decode_known_texts
from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.estimators.collection import Collection

Fields = dict[str, object]


@dataclass(frozen=True)
class Inspection:
    """Options of the output.

    Parameters
    ----------
    collections : of the file, by fingerprint; others are shown by fingerprint alone.
    payload : True to show the content of randomized reports, counters and estimates, too.
    """

    collections: Mapping[int, Collection]
    payload: bool

    def named(self, fingerprint: int) -> Fields:
        """Return name and fingerprint of a collection; the name is None if the file lacks it."""
        known = self.collections.get(fingerprint)
        return {"collection": known.name if known else None, "fingerprint": f"{fingerprint:016x}"}


def instant(unix_ms: int) -> str:
    """Return a time in UTC; ValueError or OverflowError if it is out of range."""
    return (
        datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def state_row(inspection: Inspection, record: KafkaRecord) -> Fields:
    """Decode a ledger's row; RowError if it is none."""
    return _row(inspection, row_keys.decode_key(record.key or b""), record.value)


def counts_row(inspection: Inspection, record: KafkaRecord) -> Fields:
    """Decode a row of `counts`, its source partition first; RowError if it is none."""
    key, source = row_keys.split_source(record.key or b"")
    return {"source": source} | _row(inspection, key, record.value)


def _row(inspection: Inspection, key: row_keys.Key, value: bytes | None) -> Fields:
    shown = _key(inspection, key)
    return shown | ({"deleted": True} if value is None else _value(inspection, key, value))


def _key(inspection: Inspection, key: row_keys.Key) -> Fields:
    """Return a row's kind and the fields of its key."""
    if isinstance(key, row_keys.SingleKey):
        return {"kind": key.name.lower()}
    if key == row_keys.TermsKey(EVERY_COLLECTION):
        return {"kind": "relays"}
    shown: Fields = {"kind": KINDS[type(key)], **inspection.named(key.fingerprint)}
    if not isinstance(key, row_keys.TermsKey | row_keys.KnownTextsKey):
        shown["window_start"] = key.window_start
    if isinstance(key, row_keys.CountKey):
        shown |= {"cohort": key.cohort, "page": key.page}
    if isinstance(key, row_keys.RejectedKey):
        if key.reason not in REASONS:
            raise row_values.RowError("its reason is unknown")
        shown["reason"] = key.reason
    return shown


KINDS: dict[type, str] = {
    row_keys.CountKey: "counters",
    row_keys.IdsKey: "pack_ids",
    row_keys.RejectedKey: "rejected",
    row_keys.PublishedKey: "published",
    row_keys.TermsKey: "terms",
    row_keys.KnownTextsKey: "known_texts",
}


def _value(inspection: Inspection, key: row_keys.Key, value: bytes) -> Fields:
    match key:
        case row_keys.CountKey():
            return _counters(row_values.decode_counters(value), payload=inspection.payload)
        case row_keys.IdsKey():
            return {"ids": len(row_values.decode_ids(value)) // row_values.ID_BYTES}
        case row_keys.RejectedKey():
            return {"packs": row_values.decode_rejected(value)}
        case row_keys.PublishedKey():
            published = row_values.decode_published(value)
            return {"revision": published.revision, "final": published.final, "packs": published.packs}
        case row_keys.TermsKey():
            held = row_values.decode_terms(value)
            if held.closing:
                return {
                    "relays_sent_until": instant(held.closing.sent_ms) if held.closing.sent_ms else None,
                    "wait_seconds": held.closing.wait_ms // 1000,
                }
            terms = msgspec.to_builtins(held)
            return {name: terms[name] for name in ("since", "until", "window_seconds", "spans")}
        case row_keys.KnownTextsKey():
            known = decode_known_texts(value)
            return {"looked_at": known.looked_at, "texts": len(known.texts)}
        case row_keys.SingleKey.PROGRESS:
            return _progress(row_values.decode_progress(value))
        case row_keys.SingleKey.REVISION:
            return {"revision": row_values.decode_revision(value)}
        case row_keys.SingleKey.GENESIS:
            genesis = row_values.decode_genesis(value)
            return {"topic_id": genesis.topic_id.hex(), "partitions": genesis.partitions}
        case row_keys.SingleKey.OWNER:
            return {}


def _counters(counters: row_values.CounterPage, *, payload: bool) -> Fields:
    shown: Fields = {"reports": counters.reports, "packs": counters.packs, "counters": len(counters.counts)}
    return shown | ({"counts": counters.counts.tolist()} if payload else {})


def _progress(progress: row_values.LedgerProgress) -> Fields:
    return {
        "position": progress.position,
        "watermark": instant(progress.watermark_ms),
        "closed_until": instant(progress.closed_until_ms),
        "whole_from": progress.whole_from,
    }

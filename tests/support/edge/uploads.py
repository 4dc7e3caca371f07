"""Collections of a test edge, and uploads for them."""

import os
import time

from deniable.config.settings.allowance import Allowance
from deniable.edge.intake.acceptance import group_terms
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import round_to_thresholds
from deniable.protocol import wire
from deniable.protocol.uploads.upload import Upload, UploadGroup, encode_upload

WINDOW_SECONDS = 3600
GRACE_SECONDS = 600
DELIVERY_SECONDS = 10
SMALL = Collection("small", KRR.from_epsilon(3, 2.0), ("a", "b", "c"), window_seconds=3600, grace_seconds=600)
LARGE = Collection("large", KRR.from_epsilon(1000, 2.0), window_seconds=3600, grace_seconds=600)
WHOLE = Collection("whole", KRR.from_epsilon(256, 2.0), window_seconds=3600, grace_seconds=600)
BITS = Collection(
    "bits", Rappor(64, 2, 4, *round_to_thresholds(0.25, 0.35, 0.65)), window_seconds=3600, grace_seconds=600
)
COLLECTIONS = (SMALL, LARGE, WHOLE, BITS)
ALLOWANCES = tuple(Allowance(each, None) for each in COLLECTIONS)
TERMS = group_terms(COLLECTIONS, DELIVERY_SECONDS)


def group(collection=SMALL, rows=None, start=None, **changes):
    """Return a group of one report, or of these rows, in the present window."""
    mechanism, width = collection.mechanism.wire_number, collection.width
    size = wire.report_bytes(mechanism, width)
    rows = bytes(size) if rows is None else rows
    start = collection.window_start(time.time()) if start is None else start
    fields = {"fingerprint": collection.fingerprint, "mechanism": mechanism, "cohort": 0, "width": width}
    fields |= {"window_start": start, "reports": len(rows) // size, "rows": rows} | changes
    return UploadGroup(**fields)


def upload(*groups, upload_id=None):
    """Return the bytes of an upload of these groups, or of one good one."""
    return encode_upload(Upload(upload_id or os.urandom(16), groups or (group(),)))


def post(body, headers=(), target="/v1/reports", content_type="application/vnd.deniable.reports"):
    """Return the bytes of a request."""
    lines = [f"POST {target} HTTP/1.1", "Host: edge.example", f"Content-Length: {len(body)}"]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body

"""The list of collections that clients fetch: what they need to randomize and to limit reports, signed.

Pure. The same file, key and intake grace give the same bytes, so all edges of a deployment serve one ETag.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from deniable.config.settings.allowance import UNLIMITED, Allowance
from deniable.edge.signing_key import SigningKey
from deniable.estimators.collection import Collection
from deniable.protocol.uploads.signed_list import FORMAT, signed_bytes, thresholds_as_text


@dataclass(frozen=True)
class CollectionList:
    """The body of `GET /v1/collections` and its ETag, quotes included."""

    body: bytes
    etag: str


def collection_list(
    revision: int, allowances: Iterable[Allowance], delivery_seconds: int, key: SigningKey
) -> CollectionList:
    """Build the signed list.

    Parameters
    ----------
    revision : of the collection file. Clients refuse one below the highest that they have seen.
    allowances : of all collections, in the file's order; canaries are left out.
    delivery_seconds : by which a window takes uploads for less time than its grace, seconds, >= 0.
    key : signs the list.
    """
    entries = [_entry(each, delivery_seconds) for each in allowances if not each.collection.canary]
    signed = _compact({"format": FORMAT, "revision": revision, "collections": entries})
    answer = {
        "signed": signed,
        "signature": key.sign(signed_bytes(signed)),
        "public_key": key.public_key,
    }
    body = json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()
    return CollectionList(body, f'"{sha256(body).hexdigest()[:32]}"')


def _compact(content: object) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _entry(allowance: Allowance, delivery_seconds: int) -> Mapping[str, object]:
    collection, unchanged = allowance.collection, allowance.epsilon_inf("unchanged")
    return {
        "name": collection.name,
        "fingerprint": f"{collection.fingerprint:016x}",
        "mechanism": thresholds_as_text(collection.mechanism.parameters()),
        "values": collection.values,
        "other": collection.other,
        "memoize": collection.memoize,
        "window_seconds": collection.window_seconds,
        "grace_seconds": collection.grace_seconds - delivery_seconds,
        "reports_per_window": allowance.reports_per_window,
        "budget": _budget(allowance),
        "epsilon": collection.mechanism.epsilon,
        "epsilon_inf": None if math.isinf(unchanged) else unchanged,
        "epsilon_per_report": allowance.epsilon_per_report,
        "memoized": allowance.memoized,
        **_fields(collection),
    }


def _fields(collection: Collection) -> Mapping[str, object]:
    """The two fields of a pair: labels of pairs do not say where the first field's value ends."""
    listed = [{"values": field.values, "other": field.other} for field in collection.fields]
    return {"fields": listed} if listed else {}


def _budget(allowance: Allowance) -> Mapping[str, object] | None:
    """Return the budget; its reports are those of clients that show any number of changes, as browsers do."""
    budget = allowance.budget
    if budget is None:
        return None
    limit = replace(allowance, budget=replace(budget, changes=None)).unspent_limit
    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "period_seconds": budget.period_seconds,
        "values": allowance.values,
        "reports": None if limit == UNLIMITED else limit,
    }

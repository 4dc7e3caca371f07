"""Packs in bulk: the same reports under ids of their own, spread over collections and their cohorts."""

import os
from collections.abc import Sequence

import numpy as np
from crc32c import crc32c

from deniable.estimators.collection import Collection
from deniable.protocol import wire

_MAGIC = int.from_bytes(wire.MAGIC, "little")


def packs_of(
    collections: Sequence[Collection],
    numbers: range,
    payload: bytes,
    reports: int,
    window_start: int,
    home: int = 0,
    partitions: int = 1,
) -> list[bytes]:
    """Encode the packs with these numbers, which cycle through the collections and then their cohorts.

    Parameters
    ----------
    collections : of one mechanism.
    numbers : of the packs.
    payload : of every pack.
    reports : in the payload.
    window_start : unix seconds.
    home, partitions : all ids belong to this partition of so many.
    """
    each, count = collections[0], len(numbers)
    turns, which = np.divmod(np.array(numbers), len(collections))
    fingerprints = np.array([collection.fingerprint for collection in collections], np.uint64)
    ids = np.frombuffer(os.urandom(wire.PACK_ID_BYTES * count), "<u8").reshape(count, 2)
    low = ids[:, 0] // np.uint64(2) // np.uint64(partitions) * np.uint64(partitions) + np.uint64(home)
    heads = np.zeros(count, wire.HEADER)
    heads["magic"], heads["version"] = _MAGIC, wire.VERSION
    heads["mechanism"], heads["width"] = each.mechanism.wire_number, each.width
    heads["cohort"], heads["fingerprint"] = turns % each.cohorts, fingerprints[which]
    heads["window_start"], heads["reports"] = window_start, reports
    heads["low"], heads["high"] = low, ids[:, 1]
    checked = heads.view(f"V{wire.HEADER_BYTES}").astype(f"V{wire.CHECKED_BYTES}").tolist()
    heads["crc"] = [crc32c(payload, crc32c(head)) for head in checked]
    return [head + payload for head in heads.view(f"V{wire.HEADER_BYTES}").tolist()]

"""The JSON Schema of a record of the topic `estimates`, generated from its type and the meanings below.

It is committed as `estimate.schema.json` beside this file, for readers of the topic in other languages.
"""

from pathlib import Path
from typing import Any

import msgspec

from aggregator.records.estimate import RECORD_VERSION, EstimateRecord
from producers import wire

PATH = Path(__file__).with_name("estimate.schema.json")
DRAFT = "https://json-schema.org/draft/2020-12/schema"
DESCRIPTION = (
    "One estimate of one window of a collection, or one part of it. Read with isolation level "
    "read_committed. Columns (values, frequency, count, std_error, low, high, significant) have equal "
    "length: entry i of each describes the same value. Frequencies and errors are fractions of all reports. "
    "Fields may be added within a version."
)

MEANINGS = {
    "version": "Version of this schema.",
    "collection": "Name of the collection.",
    "fingerprint": "Hash of everything that affects the meaning of a report; estimates with different "
    "fingerprints are not comparable.",
    "window_start": "First second of the window, unix seconds.",
    "window_end": "First second after the window, unix seconds.",
    "revision": "Packs merged so far; more once a rebuild of lost counts has found fewer packs than were "
    "published. Of the records of a window the highest revision wins, and at equal revisions the final one.",
    "final": "Whether the window is over. If counts change after all, another final record with a higher "
    "revision follows.",
    "reports": "Reports counted.",
    "packs": "Packs counted: Kafka records of reports.",
    "rejected": "Rejected packs of this window.",
    "mechanism": "How values were randomized.",
    "estimator": "How the frequencies were estimated: mle is the maximum of the likelihood.",
    "epsilon": "Privacy loss of one report, nats.",
    "values": "What is estimated, in the order of the collection file.",
    "frequency": "Estimated share of the reports.",
    "count": "Estimated number of reports: frequency times reports.",
    "std_error": "Standard error of the unconstrained estimate of the share; null if the counts "
    "carry no information on it.",
    "low": "Lower end of the 95 % interval of the share.",
    "high": "Upper end of the 95 % interval of the share.",
    "significant": "Whether the share differs from 0, at a false-discovery rate of 5 % among all values.",
    "omitted": "Values that are in none of the parts up to this one: estimated lower, or too long for a "
    "record.",
    "other": "Reports of no value in the parts up to this one; null if there are none, or "
    "nothing is known about them. If values are omitted, it is a separate estimate, corrected for the noise "
    "that put the others on the list, so the shares need not sum to 1.",
    "other.frequency": "Share of the reports; for rappor-k-hot, the mean number of such values in a report.",
    "other.std_error": "Standard error of that; for rappor with omitted candidates, a bound on it; null if "
    "the counts carry no information on it.",
    "diagnostics": "Figures of the fit, by name.",
    "part": "Number of this part. Part 1 holds the largest estimates.",
    "parts": "Number of parts. An estimate is complete when parts 1 to this number exist for the same "
    "collection, window_start, revision and final.",
}

#: Constraints of fields that Python types do not express.
LIMITS: dict[str, dict[str, Any]] = {
    "version": {"const": RECORD_VERSION},
    "collection": {"pattern": "^[a-z][a-z0-9_-]{0,62}$"},
    "fingerprint": {"pattern": "^[0-9a-f]{16}$"},
    "window_start": {"minimum": 0, "maximum": wire.MAX_WINDOW_START},
    "mechanism": {"enum": ["k-rr", "k-rr-longitudinal", "rappor", "rappor-one-hot", "rappor-k-hot"]},
    **{name: {"exclusiveMinimum": 0} for name in ("window_end", "epsilon")},
    **{name: {"minimum": 0} for name in ("rejected", "omitted")},
    **{name: {"minimum": 1} for name in ("revision", "reports", "packs", "part", "parts")},
}
#: Constraints of each entry of a column.
ENTRY_LIMITS: dict[str, dict[str, Any]] = {
    **{name: {"minimum": 0, "maximum": 1} for name in ("frequency", "low", "high")},
    **{name: {"minimum": 0} for name in ("count", "std_error")},
}


def schema() -> dict[str, Any]:
    """The JSON Schema, draft 2020-12, as JSON values."""
    _, components = msgspec.json.schema_components([EstimateRecord], ref_template="#/$defs/{name}")
    record, other = components["EstimateRecord"], components["Other"]
    for name, field in record["properties"].items():
        field |= {"description": MEANINGS[name]} | LIMITS.get(name, {})
        field.pop("default", None)
    for name, limits in ENTRY_LIMITS.items():
        record["properties"][name]["items"] |= limits
    for name, field in other["properties"].items():
        field |= {"description": MEANINGS[f"other.{name}"], "minimum": 0}
    return {
        "$schema": DRAFT,
        **record,
        "required": list(record["properties"]),
        "title": "deniable estimate",
        "description": DESCRIPTION,
        "$defs": {"Other": other},
    }


def text() -> str:
    """The schema as the text of the file."""
    return msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"

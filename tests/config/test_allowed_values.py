"""The ranges in messages are those that the checks enforce."""

import re
from pathlib import Path

import pytest

from deniable.config.allowed_values import MECHANISMS, allowed
from deniable.config.entries import BudgetEntry
from deniable.config.file import CollectionFileError, load
from deniable.config.sections import (
    BudgetStoreSection,
    EdgeSection,
    File,
    KafkaSection,
    ProducerSection,
    RelaySection,
)

COLLECTION = {
    "name": "plan",
    "mechanism": "k-rr",
    "values": "[a, b]",
    "epsilon": "1",
    "window_seconds": "60",
    "grace_seconds": "100000",
    "budget": "none",
}
SECTIONS = {"kafka": KafkaSection, "producer": ProducerSection, "edge": EdgeSection, "relay": RelaySection}
OF_RELAY = (
    "batch_reports", "shuffle_reports", "window_uploads", "idle_seconds", "delivery_seconds", "forged_share",
)  # fmt: skip
ENTRY = [
    *("window_seconds", "grace_seconds", "retention_seconds", "minimum_reports", "window_packs"),
    *("change_alarms_a_year", "reports_per_window", "size", "epsilon"),
]


def document(field: str, value: str) -> str:
    """A collection file with this field set to this value."""
    fields = COLLECTION | ({field: value} if field in ENTRY else {})
    if field == "size":
        del fields["values"]
    lines = ["collections:", "  - {" + ", ".join(f"{key}: {text}" for key, text in fields.items()) + "}"]
    for section, kind in SECTIONS.items():
        if field in kind.__struct_fields__:
            lines.append(f"{section}: {{{field}: {value}}}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "field",
    [
        *ENTRY,
        *("partitions", "replication_factor"),
        *("pack_reports", "pack_seconds", "outbox_bytes", "block_milliseconds"),
        *("uploads_per_minute", "trusted_proxies", "max_age_seconds"),
        *OF_RELAY,
    ],
)
def test_stated_range_is_the_enforced_one(tmp_path: Path, field: str) -> None:
    words = allowed(field, in_budget=False) or ""
    _lowest, highest = re.search(r"[\[(]([\d.]+), ([\d.]+)\]$", words).groups()  # type: ignore[union-attr]
    file = tmp_path / "deniable.yaml"
    file.write_text(document(field, str(int(highest) + 1)))
    with pytest.raises(CollectionFileError, match=re.escape(f", {highest}]")):
        load(file, environment={})
    file.write_text(document(field, highest))
    load(file, environment={})


def test_every_field_without_words_is_text_or_a_mapping() -> None:
    sections = (File, KafkaSection, ProducerSection, BudgetStoreSection, EdgeSection, RelaySection)
    known = {field for section in sections for field in section.__struct_fields__}
    known.update(*(entry.__struct_fields__ for entry in MECHANISMS.values()))
    wordless = {field for field in known if allowed(field, in_budget=False) is None}
    assert wordless == {
        *("kafka", "producer", "security", "budget_store", "edge", "relay"),
        *("bootstrap_servers", "data_dir", "secret_file", "candidates_file", "edge_ca_file"),
        *("signing_key_file", "certificate_file", "key_file"),
        *("allow_plaintext", "other", "canary", "memoize"),  # the type says it all
    }
    assert all(allowed(field, in_budget=True) for field in BudgetEntry.__struct_fields__)

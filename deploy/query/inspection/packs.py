"""Decode a pack of `reports`: its header, and on request its reports."""

from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.deploy.query.inspection.rows import Fields, Inspection
from deniable.protocol import wire
from deniable.protocol.marker import is_marker

#: Names of mechanisms by their number in a pack's header, which those with rows of bits share.
MECHANISMS = {
    wire.KRR_NUMBER: "k-rr",
    wire.RAPPOR_NUMBER: "rappor",
    wire.LONGITUDINAL_KRR_NUMBER: "k-rr-longitudinal",
    wire.SQUARE_WAVE_NUMBER: "number",
    wire.PAIR_NUMBER: "k-rr-pair",
    wire.LOCAL_HASH_NUMBER: "local-hash",
    wire.LONGITUDINAL_HASH_NUMBER: "local-hash-longitudinal",
}


def pack_record(inspection: Inspection, record: KafkaRecord) -> Fields:
    """Decode a record of `reports`; WireError if it is neither a pack nor a marker."""
    if is_marker(record.value):
        return {"kind": "marker"}
    pack = wire.decode(record.value)
    shown: Fields = {
        "kind": "pack",
        **inspection.named(pack.fingerprint),
        "window_start": pack.window_start,
        "mechanism": _mechanism_of(inspection, pack),
        "cohort": pack.cohort,
        "reports": pack.reports,
        "width": pack.width,
        "pack_id": pack.pack_id.hex(),
    }
    return shown | ({"payload": wire.shown_reports(pack)} if inspection.payload else {})


def _mechanism_of(inspection: Inspection, pack: wire.Pack) -> str:
    """Return the name of the collection's mechanism if the file has it and the header agrees."""
    known = inspection.collections.get(pack.fingerprint)
    if known is not None and known.mechanism.wire_number == pack.mechanism:
        return known.mechanism.name
    return MECHANISMS[pack.mechanism]

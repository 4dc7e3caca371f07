"""A decoder that trusts the length field: a planted defect that the engine must find."""

SEEDS = [b"DNBL\x01\x03abc"]


def check(data: bytes) -> None:
    """Raise IndexError if the length field exceeds the payload."""
    if data[:4] == b"DNBL" and len(data) > 5:
        payload = data[6:]
        payload[data[5] - 1]

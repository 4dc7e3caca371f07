"""A decoder that believes the length that it reads: what the engine must find, if it finds anything."""

SEEDS = [b"DNBL\x01\x03abc"]


def check(data: bytes) -> None:
    """IndexError where the length lies."""
    if data[:4] == b"DNBL" and len(data) > 5:
        payload = data[6:]
        payload[data[5] - 1]

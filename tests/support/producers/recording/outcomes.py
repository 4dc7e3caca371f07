"""What a fake Kafka was sent, and a store that another process holds."""

import sqlite3
from collections import Counter

from deniable.protocol.wire import decode


def sent(kafka):
    """Reports by fingerprint and window."""
    counts = Counter()
    for record in kafka.sent:
        pack = decode(record["value"])
        counts[pack.fingerprint, pack.window_start] += pack.reports
    return counts


def reports(kafka):
    return sum(sent(kafka).values())


def lock(folder):
    connection = sqlite3.connect(folder / "producer.sqlite", isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    return connection

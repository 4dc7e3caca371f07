"""The marker: a record of `reports` that is no pack, and shows that time has passed.

Whatever a worker counts, the append time of each record moves its partition's watermark. A partition in which
nothing is reported gets a marker when a window waits for it: the broker that acknowledges it with acks=all is
the partition's leader, and what it appends later is later. An end offset proves neither.

Rule: a marker holds nothing, so that a copy, or one of a stranger, does no more than any record does: it
moves the watermark to the time at which the broker appended it.
"""

MARKER = b"DNBM\x01"  # the last byte is a version

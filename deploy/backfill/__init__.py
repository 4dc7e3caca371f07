"""`deniable backfill`: randomize and count events of the past without Kafka, into exported files.

May import `cli`, `produce` and `query`. Begin with `command`; `past_counts` turns events into counts, under
the limits of `past_limits`, and `past_files` turns counts into files.
"""

"""Commands of the aggregator: run workers, check readiness, replay, retire.

May import `kafka_wait`, `open_files`, `reload` and `relay`, whose recount of uploads is part of a replay.
Begin with `command`.
"""

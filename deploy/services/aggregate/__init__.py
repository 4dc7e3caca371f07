"""Commands of the aggregator: run workers, check readiness, replay, retire.

May import `relay`, whose recount of uploads is part of a replay. Begin with `command`.
"""

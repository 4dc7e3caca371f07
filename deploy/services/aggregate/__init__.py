"""Commands of the aggregator: run workers, check readiness, replay, retire.

May import no sibling. Begin with `command`.
"""

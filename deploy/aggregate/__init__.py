"""Commands of the aggregator: run workers, check readiness, replay, retire.

May import `config`, `cli` and `cluster`. Begin with `command`.
"""

"""Commands of an aggregator: run workers, ask whether one is ready, replay, retire.

May import `config`, `cli` and `cluster`. Begin with `command`.
"""

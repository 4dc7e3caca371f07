"""Logs of uploads: random ones in memory, and a literal model of what counts."""

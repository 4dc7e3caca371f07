"""Producers that record events: signals, forks, ends of processes, kills, latency, and privacy."""

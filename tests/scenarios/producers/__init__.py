"""Producers from values to a broker: kills, forks, damage, and an audit of privacy."""

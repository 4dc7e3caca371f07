"""Fakes, models and a browser for tests of ledgers, owners and the worker's page."""

"""Fakes, models and collections for tests of producers; `audit` bounds epsilon from outputs."""

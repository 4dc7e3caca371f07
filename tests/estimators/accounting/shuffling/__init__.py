"""Tests of the epsilon of shuffled reports."""

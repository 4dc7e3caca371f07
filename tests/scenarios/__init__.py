"""Tests that span several packages: whole processes, faults, reports from end to end."""

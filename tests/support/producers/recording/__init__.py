"""Processes that record events, and handlers that interrupt them at any step."""

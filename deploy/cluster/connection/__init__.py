"""Connecting to brokers, and the cause and remedy when that fails.

Begin with `probe`; `causes` turns errors of clients into causes.
"""

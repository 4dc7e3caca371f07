"""Connect to brokers; when that fails, name cause and remedy.

Begin with `probe`; `causes` turns errors of clients into causes.
"""

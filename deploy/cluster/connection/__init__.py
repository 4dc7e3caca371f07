"""Connect to brokers; when that fails, name cause and remedy.

May import no sibling. Begin with `probe`; `causes` turns errors of clients into causes.
"""

"""Connect to brokers; when that fails, name cause and remedy.

May import `cluster`, `credential_files` and `security`. Begin with `probe`; `causes` turns errors of clients
into causes.
"""

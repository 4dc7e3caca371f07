"""The collection file: from YAML to a checked `Configuration`.

May import `cluster`, `estimators` and `protocol`. Begin with `file`; `entries` and `sections` say which
fields there are.
"""

"""The collection file: from YAML to a checked `Configuration`.

May import the packages below only. Begin with `file`; `entries` and `sections` say which fields there are.
"""

"""The collection file: from YAML to a checked `Configuration`.

May import no sibling. Begin with `file`; `entries` and `sections` say which fields there are.
"""

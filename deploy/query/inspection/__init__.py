"""`deniable inspect`: print the records of topics, in words or as JSON lines.

May import no sibling. Begin with `command`; `topic` reads records, `records` decodes them, with
`rows`, `packs` and `uploads`.
"""

"""The command `deniable` itself: start, end, signals, logs, shared options.

May import no sibling. Begin with `main`; `commands` lists the commands and where each is defined.
"""

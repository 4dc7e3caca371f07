"""The command `deniable` itself: start, end, signals, logs, shared options.

May import `config`. Begin with `main`; `commands` lists the commands and where each is defined.
"""

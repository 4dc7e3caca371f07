"""Commands of a producer: `deniable produce`, which randomizes and sends lines of input, and `canary`.

May import `cli`, `cluster` and `services`. Begin with `command` and `run`; `input` reads the lines.
"""

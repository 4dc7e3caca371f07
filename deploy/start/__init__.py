"""The first hour: `deniable init` writes a sample, `deniable dev` runs all that it needs on this machine.

May import `broker`, `cli`, `cluster` and `services`. Begin with `init`, then `dev`.
"""

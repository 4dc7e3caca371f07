"""The first hour: `deniable init` writes a sample, `deniable dev` runs all that it needs on this machine.

May import `config`, `cli`, `broker` and `cluster`. Begin with `init`, then `dev`; `sample` has the files.
"""

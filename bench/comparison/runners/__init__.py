"""Programs of child processes: `serve` runs jobs, `ours` and `peers` hold a module for each library.

Modules of `peers` import nothing of this project. Begin with `serve`.
"""

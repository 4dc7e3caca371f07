"""Programs of child processes: `serve` runs jobs, `ours` and `peers` hold a module for each library.

May import no sibling. Begin with `serve`.
"""

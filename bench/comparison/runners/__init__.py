"""Programs of child processes: `serve` runs jobs, `ours` and `peers` hold a module for each library, `events`
theirs and ours for one event a call.

May import `timing`, as may `ours`. Begin with `serve`.
"""

"""From an application's calls to submissions: one event a call, or a batch; checked, then randomized.

May import `queueing` and `storing_thread`. Begin with `recorder`; `event_buffer` is where true values wait,
`submissions` randomizes them, `process_end` stores them when the process ends.
"""

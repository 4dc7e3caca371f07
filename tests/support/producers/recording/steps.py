"""Call a handler at a step of the interpreter, where a signal handler may run."""

import sys


class Steps:
    """Counts the interpreter's steps in this thread, and calls `handler` at one of them."""

    def __init__(self, handler=None, at=-1):
        self.count = 0
        self._handler = handler
        self._at = at

    def __enter__(self):
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _trace(self, frame, event, _):
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.count += 1
            if self.count == self._at:
                self._handler()
        return self._trace


def steps_of(call):
    """The number of steps of a call."""
    with Steps() as steps:
        call()
    return steps.count

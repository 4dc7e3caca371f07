"""Run a command that the kernel kills when its parent process ends, however that ends.

    python -I -S guard.py PARENT_PID COMMAND [ARGUMENT ...]

A separate program, not a `preexec_fn`: between fork and exec of a process with threads, such as those of
Kafka clients, Python code may deadlock, and Python 3.12 warns of it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def main() -> None:
    """Ask for SIGKILL at the parent's death, then become the command. Source: prctl(2)."""
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # If the parent died before this call, no signal comes: so compare the parent's pid only now.
    if os.getppid() != int(parent):
        sys.exit(f"cannot run {command[0]}: the process that wanted it has ended")
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()

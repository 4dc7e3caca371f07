"""The command `deniable`: start, exit status and error messages.

Rule: slow imports come after SIGINT is handled, so that Ctrl-C never shows a traceback.
"""

import os
import re
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches

import click

from deniable.deploy.cli import standard_streams
from deniable.deploy.cli.signals import end_in_good_order, handle, leave_at_once

FAILED = 1
#: What nobody reads in a message: an argument of hundreds of digits or letters is cut here.
_LONG_WORD = re.compile(r"([^\s/]{100})[^\s/]{100,}")
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

#: Errors of Kafka's clients, looked up only in clients that are imported: no other can have raised one.
KAFKA_ERRORS = (("aiokafka.errors", "KafkaError"), ("kafka.errors", "KafkaError"))


def with_nearest(error: click.ClickException) -> click.ClickException:
    """Add `Did you mean …?` to an error about an unknown subcommand or choice, if a known one is near.

    Parameters
    ----------
    error : of click; its message may be changed.
    """
    if not isinstance(error, click.UsageError) or "Did you mean" in error.message or error.ctx is None:
        return error
    wrong = re.match(r"No such command '(.*?)'\.|'(.*?)' is not one of ", error.message)
    if wrong and (near := get_close_matches(wrong[1] or wrong[2], _known(error), 1)):
        error.message += f" Did you mean '{near[0]}'?"
    return error


def _known(error: click.UsageError) -> Iterable[str]:
    if isinstance(error, click.BadParameter):
        kind = None if error.param is None else error.param.type
        return list(map(str, kind.choices)) if isinstance(kind, click.Choice) else []
    group = None if error.ctx is None else error.ctx.command
    return group.list_commands(error.ctx) if isinstance(group, click.Group) and error.ctx else []


def main() -> None:
    """Run the command; print errors that a user can fix, in one line each."""
    # Before numpy is imported. With several threads OpenBLAS waits for a busy core at each small product:
    # beside a broker, decoding takes 140 ms instead of 3 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    standard_streams.open_closed()
    standard_streams.escape_unknown()
    handle(signal.SIGINT, leave_at_once)  # until the command is imported
    for number in (signal.SIGTERM, signal.SIGHUP):
        handle(number, end_in_good_order)
    try:
        status = _run()
    except OSError as error:  # for example a full disk or a closed stream
        status = _refuse(standard_streams.flush() or _words(error))
    handle(signal.SIGINT, leave_at_once)
    lost = standard_streams.flush()
    sys.exit(_refuse(lost, status or FAILED) if lost else status)


def _run() -> int:
    import click

    from deniable.deploy.cli.commands import deniable
    from deniable.deploy.cli.main import with_nearest
    from deniable.estimators.errors import DeniableError

    try:
        status = deniable.main(prog_name="deniable", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit as ended:
        status = ended.code
    except click.ClickException as error:
        error.message = _escaped(_LONG_WORD.sub(r"\1…", error.message))
        with suppress(OSError):  # stderr itself may be full
            with_nearest(error).show()
        return error.exit_code
    except DeniableError as error:
        return _refuse(str(error), error.exit_status)
    except kafka_errors() as error:
        return _refuse(str(error))
    return status if isinstance(status, int) else 0


def kafka_errors() -> tuple[type[BaseException], ...]:
    """Return the error classes of those clients that are imported."""
    return tuple(getattr(sys.modules[module], name) for module, name in KAFKA_ERRORS if module in sys.modules)


def _refuse(message: str, status: int = FAILED) -> int:
    with suppress(OSError):  # stderr itself may be full
        sys.stderr.write(f"Error: {_escaped(message)}\n")  # at once: threads may log
        sys.stderr.flush()
    return status


def _escaped(message: str) -> str:
    """Return a message that no terminal obeys: names of files and options may hold control characters."""
    from deniable.deploy.cli.input_text import printable  # click may not be imported

    return "\n".join(map(printable, message.split("\n")))


def _words(error: OSError) -> str:
    silent = isinstance(error, TimeoutError) and not error.strerror
    reason = "Kafka did not answer in time" if silent else error.strerror or repr(error)
    return f"{error.filename}: {reason}" if error.filename else reason

"""The message of a command that refused its arguments or files."""

from click.testing import Result


def refusal_of(ended: Result, status: int) -> str:
    """Return what the command said without the usage above it; its status is this, and its stdout empty."""
    assert (ended.exit_code, ended.stdout) == (status, ""), ended.output
    assert "Error: " in ended.stderr, ended.exception
    return ended.stderr[ended.stderr.index("Error: ") :]

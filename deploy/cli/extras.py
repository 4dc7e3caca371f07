"""Which commands need packages beyond those of a producer."""

#: The extra of `deniable` that brings what a command needs; other commands need none.
EXTRAS = {
    "demo": "demo",
    "dev": "worker",
    "plan": "analysis",
    "edge": "edge",
    "aggregate": "worker",
    "replay": "worker",
    "retire": "worker",
    "watch": "analysis",
    "rollup": "analysis",
    "decode": "analysis",
    "changes": "analysis",
    "detect": "analysis",
    "compare": "analysis",
    "export": "analysis",
    "backfill": "analysis",
    "estimate": "analysis",
}


def extra_missing(command: str, module: str | None) -> str:
    """Return what to say if a module of a command's extra cannot be imported.

    Parameters
    ----------
    command : one of EXTRAS.
    module : its dotted name.
    """
    package = (module or "a package").partition(".")[0]
    return f"deniable {command} needs {package}: pip install 'deniable[{EXTRAS[command]}]'"

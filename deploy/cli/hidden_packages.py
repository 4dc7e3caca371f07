"""Refuse to run where another package of the same name hides one of ours."""

from importlib.util import find_spec
from pathlib import Path

# The packages have common names. If an application has a package of the same name, Python imports the wrong
# one, or fails far from the cause.
NAMES = ("estimators", "producers", "relay", "edge", "aggregator", "analysis", "deploy")


def refuse_hidden_packages() -> None:
    """Raise ImportError if a package of ours would be imported from elsewhere than beside this one."""
    home = Path(__file__).parents[2]
    for name in NAMES:
        spec = find_spec(name)
        found = None if spec is None else spec.origin or str(spec.submodule_search_locations)
        if found != str(home / name / "__init__.py"):
            raise ImportError(f"another package called {name!r} hides deniable's: {found}", name=name)

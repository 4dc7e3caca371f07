"""A problem of a cluster, for the person who can fix it."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One problem and its remedy.

    Parameters
    ----------
    what : is wrong, one sentence without a full stop.
    remedy : a command, or a sentence that begins with a capital; empty if `what` says it all.
    is_warning : True if everything still works: one of several brokers is down, a certificate expires soon.
    """

    what: str
    remedy: str
    is_warning: bool = False

    def __str__(self) -> str:
        """One line."""
        if not self.remedy:
            return self.what
        return f"{self.what}{'.' if self.remedy[0].isupper() else ':'} {self.remedy}"

"""What is wrong with a cluster, as the person who can mend it reads it."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that is wrong, and what to do about it.

    Parameters
    ----------
    what : is wrong, one sentence without its full stop.
    remedy : a command, or a sentence that begins with a capital; empty if `what` says it all.
    is_warning : whether everything works now: a broker is down and others are up, a certificate expires soon.
    """

    what: str
    remedy: str
    is_warning: bool = False

    def __str__(self) -> str:
        """One line."""
        if not self.remedy:
            return self.what
        return f"{self.what}{'.' if self.remedy[0].isupper() else ':'} {self.remedy}"

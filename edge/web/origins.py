"""Cross-origin requests: which pages may send uploads from a browser, and read answers.

This is no access control: anyone can send any request without a browser. It keeps pages of others from
sending in the name of their visitors.
"""

from collections.abc import Collection

from deniable.edge.web.answers import Answer

ANY = "*"
PREFLIGHT = (
    (b"Access-Control-Allow-Methods", b"GET, POST"),
    (b"Access-Control-Allow-Headers", b"Content-Type"),
    (b"Access-Control-Max-Age", b"86400"),
)
_EXPOSED = b"Access-Control-Expose-Headers: ETag, Retry-After\r\n"
_VARIES = b"Vary: Origin\r\n"


class AllowedOrigins:
    """The list of origins whose pages may use this server.

    Parameters
    ----------
    origins : such as https://shop.example, compared exactly; or `*` alone, for all.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._is_any = ANY in origins
        self._lines = {each.encode(): self._line(each) for each in origins}
        self._of_any = self._line(ANY)

    @staticmethod
    def _line(origin: str) -> bytes:
        return b"Access-Control-Allow-Origin: " + origin.encode() + b"\r\n" + _EXPOSED

    def lines(self, origin: bytes) -> bytes:
        """Return the header lines of every answer to this origin, each ended by CRLF; empty for none."""
        if self._is_any:
            return self._of_any
        return _VARIES + self._lines.get(origin, b"")

    def allows(self, origin: bytes, host: bytes) -> bool:
        """Whether this page may send uploads: listed, or served by this host; or no browser sent this.

        Parameters
        ----------
        origin : the request's header; empty if it has none.
        host : the request's Host.
        """
        if not origin or self._is_any or origin in self._lines:
            return True
        return bool(host) and origin.partition(b"://")[2] == host


def preflight() -> Answer:
    """Answer a browser that asks whether it may send a request."""
    return Answer(204, headers=PREFLIGHT)

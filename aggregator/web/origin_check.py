"""Answers only requests for a loopback host name or a listed one, from programs or from our own page.

Rule 1: a foreign host name is rejected. Another site can point its own name to 127.0.0.1 (DNS rebinding), and
its page could then read what is meant for this machine alone. The operator lists the names under which a
proxy that logs people in serves the page.
Rule 2: a page of another site may link here, but not read anything.
"""

import re
from collections.abc import Iterable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

HOST = "127.0.0.1"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def origin_check(names: Iterable[str] = ()) -> Middleware:
    """Return a middleware that answers 421 to another host's name, 403 to another site's page.

    Parameters
    ----------
    names : allowed host names beside loopback's, without port.
    """
    listed = "|".join(map(re.escape, (*LOOPBACK_NAMES, *names)))
    allowed = re.compile(rf"({listed})(:\d{{1,5}})?", re.IGNORECASE)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if allowed.fullmatch(request.headers.get("Host", "")) is None:
            raise web.HTTPMisdirectedRequest(
                text="ask for 127.0.0.1 or localhost; a proxy's name must be listed: --page-host NAME"
            )
        headers = request.headers
        if (
            headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
            and headers.get("Sec-Fetch-Dest") != "document"
        ):
            raise web.HTTPForbidden(text="a page of another site may link here, and ask for nothing")
        return await handler(request)

    return check


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Forbid browsers everything the page does not need."""
    response.headers.update(HEADERS)

"""Answers only requests for a loopback host name, from programs or from our own page.

Rule 1: a foreign host name is rejected. Another site can point its own name to 127.0.0.1 (DNS rebinding), and
its page could then read what is meant for this machine alone.
Rule 2: a page of another site may link here, but not read anything.
"""

import re

from aiohttp import web
from aiohttp.typedefs import Handler

HOST = "127.0.0.1"
NAMES = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
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


@web.middleware
async def check_origin(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 421 to another host's name, 403 to another site's page."""
    if NAMES.fullmatch(request.headers.get("Host", "")) is None:
        raise web.HTTPMisdirectedRequest(text="ask for 127.0.0.1 or localhost: this server has no other name")
    headers = request.headers
    if (
        headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        and headers.get("Sec-Fetch-Dest") != "document"
    ):
        raise web.HTTPForbidden(text="a page of another site may link here, and ask for nothing")
    return await handler(request)


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Forbid browsers everything the page does not need."""
    response.headers.update(HEADERS)

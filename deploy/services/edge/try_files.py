"""The files of the try page: its own in the package `edge`, and the client for browsers."""

from pathlib import Path

import edge
import producers

PAGE = Path(edge.__file__).parent / "try_page"
CLIENT = Path(producers.__file__).parent / "browser"
CLIENT_FILES = ("deniable.js", "deniable.min.js")  # the first that exists
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def try_files() -> dict[bytes, tuple[str, Path]]:
    """Return content type and file by path: /try is the page, /try/deniable.js the client for browsers."""
    found = {}
    for file in (CLIENT / name for name in reversed(CLIENT_FILES)):
        if file.is_file():
            found[b"/try/deniable.js"] = (TYPES[file.suffix], file)
    for file in sorted(PAGE.glob("*")):
        if file.suffix in TYPES and file.is_file():
            found[f"/try/{file.name}".encode()] = (TYPES[file.suffix], file)
    if index := found.pop(f"/try/{INDEX}".encode(), None):
        found[b"/try"] = index
    return found

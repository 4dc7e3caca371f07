"""The files of the try page: its own in the package `edge`, and the modules of the client for browsers."""

from pathlib import Path

PACKAGES = Path(__file__).parents[3]
PAGE = PACKAGES / "edge" / "try_page"
CLIENT = PACKAGES / "producers" / "browser"
CLIENT_MODULES = ("deniable", "mechanisms")
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def try_files() -> dict[bytes, tuple[str, Path]]:
    """Return content type and file by path.

    /try is the page, /try/deniable.js the client for browsers, /try/mechanisms.js its further mechanisms.
    """
    found = {}
    for name in CLIENT_MODULES:
        if (file := CLIENT / f"{name}.min.js").is_file():
            found[f"/try/{name}.js".encode()] = (TYPES[file.suffix], file)
    for file in sorted(PAGE.glob("*")):
        if file.suffix in TYPES and file.is_file():
            found[f"/try/{file.name}".encode()] = (TYPES[file.suffix], file)
    if index := found.pop(f"/try/{INDEX}".encode(), None):
        found[b"/try"] = index
    return found

"""Checks the address of a bucket before its client is opened, which would end the process of a wrong one."""

import re
import reprlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from deniable.analysis.errors import WrongArgumentError

SCHEME = "s3://"
#: Variables that obstore takes the endpoint from, in capitals or not after AWS_.
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def bucket_and_prefix(url: str) -> tuple[str, str]:
    """Return the two parts of `s3://BUCKET/PREFIX`, the prefix without slashes around it.

    Raises
    ------
    WrongArgumentError if it has no bucket, or more than these two, or leads out of the prefix.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    is_bucket = re.fullmatch(r"[A-Za-z0-9._-]+", parts.netloc) is not None
    path = parts.path.strip("/")
    if parts.scheme != "s3" or not is_bucket or re.search(r"[?#]", url) or {".", ".."} & set(path.split("/")):
        raise WrongArgumentError(
            f"an export to a bucket must be to s3://BUCKET/PREFIX, without ?, #, . and .. in it, got {url}"
        )
    return parts.netloc, path


def check_endpoints(environment: Mapping[str, str]) -> None:
    """Raise WrongArgumentError if a variable that names the store's endpoint is no address of HTTP.

    Parameters
    ----------
    environment : variables by name, as os.environ.
    """
    for name, given in environment.items():
        if not (name.startswith("AWS_") and name.upper() in ENDPOINTS):
            continue
        try:
            parts = urlsplit(given)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if "@" in given:
            raise WrongArgumentError(
                f"{name} must be an address without user and password: give those in AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY"
            )
        if not is_address or re.fullmatch(r"[!-~]+", given) is None or re.search(r"[?#]", given):
            raise WrongArgumentError(
                f"{name} must be http:// or https://, a host, and a port from 1 to 65535 if it is not the "
                f"scheme's, such as http://127.0.0.1:9000, got {reprlib.repr(given)}"
            )

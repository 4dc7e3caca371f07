"""`deniable ready`."""

import json
import urllib.request
from urllib.error import HTTPError, URLError

import click

from deniable.deploy.cli.listen_address import ListenAddress

SECONDS = 5.0
MOST_BYTES = 65_536


@click.command()
@click.option(
    "--address",
    type=ListenAddress(),
    default="127.0.0.1:8321",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where /readyz is served: --web-port or --metrics-port on loopback, --metrics-listen, or --listen "
    "of an edge.",
)
def ready(address: tuple[str, int]) -> None:
    """Ask a worker, producer, edge or relay whether it is ready: exit status 0 if so, else 1 and the reasons.

    Example: deniable ready --address 127.0.0.1:9100
    """
    host, port = address
    if why := why_not_ready(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"):
        raise click.ClickException(why)
    click.echo("ready")


def why_not_ready(place: str) -> str:
    """Ask what serves /readyz at ADDRESS:PORT; return why it is not ready, empty if it is."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{place}/readyz", timeout=SECONDS) as answer:
            is_ready = _is_ready(answer.read(MOST_BYTES))
            return "" if is_ready else f"the server at {place} is not deniable, or serves no /readyz"
    except HTTPError as error:
        return f"{place} is not ready: {_reasons(error)}"
    except (URLError, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        return f"nothing answers at {place}: {getattr(reason, 'strerror', None) or reason}"


def _is_ready(body: bytes) -> bool:
    try:
        answer = json.loads(body)
    except ValueError:
        return False
    return isinstance(answer, dict) and answer.get("ready") is True


def _reasons(error: HTTPError) -> str:
    with error:
        try:
            return "; ".join(dict.fromkeys(json.loads(error.read(MOST_BYTES))["reasons"]))
        except (ValueError, KeyError, TypeError):
            return f"it answered with status {error.code} and no reasons: it is not deniable"

"""The embedded broker with more settings."""

from pathlib import Path

from deniable.deploy.broker.broker import Broker


class BrokerWith(Broker):
    """A broker whose settings end with these lines."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self._lines = lines

    def _configure(self, folder: Path, port: int) -> None:
        super()._configure(folder, port)
        path = folder / "server.properties"
        kept = [line for line in path.read_text().splitlines() if not _is_set_by(line, self._lines)]
        path.write_text("\n".join([*kept, *self._lines, ""]))


def _is_set_by(line: str, lines: tuple[str, ...]) -> bool:
    return any(line.partition("=")[0] == other.partition("=")[0] for other in lines)

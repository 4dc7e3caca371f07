"""A terminal of a fixed size that runs a command: its output, and a picture of a screen."""

import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.text import Text

from tests.support.aggregator.browser import PICTURES, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

COLUMNS, LINES = 84, 28
FONT = "DejaVu Sans Mono"
SCALE = 1.5
# What rich writes before it redraws a screen: carriage return, then up, erasing line by line.
REDRAWN = re.compile(r"\r\x1b\[2K(?:\x1b\[1A\x1b\[2K)*")
WEB_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def read_to_end(master: int) -> str:
    """Return all that was written to a terminal whose other end is closed.

    A single read may return only what the kernel has passed on by then.
    """
    written = b""
    with suppress(OSError):  # Linux's error when the other end is closed
        while chunk := os.read(master, 65_536):
            written += chunk
    return written.decode(errors="replace")


class Terminal:
    """A running command and its output so far."""

    def __init__(self, command: Sequence[str]) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (LINES, COLUMNS))
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )
        os.close(slave)
        self._written = b""

    @classmethod
    @contextmanager
    def running(cls, command: Sequence[str]) -> Iterator[Self]:
        """Run until the block ends, then kill what still runs."""
        with closing(cls(command)) as terminal:
            yield terminal

    def close(self) -> None:
        """Kill the command if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    def read_until(self, text: str, seconds: float) -> bool:
        """Wait for a text; False if the command ends or the time is up without it."""
        deadline = time.monotonic() + seconds
        while text not in self.written and time.monotonic() < deadline:
            if select.select([self._master], [], [], 0.2)[0]:
                try:
                    self._written += os.read(self._master, 65_536)
                except OSError:  # Linux's error when the other end is closed
                    break
        return text in self.written

    @property
    def written(self) -> str:
        """The whole output, with control codes and plain line ends."""
        return self._written.decode(errors="replace").replace("\r\n", "\n")

    def screens(self) -> list[str]:
        """Return successive drawings of a live display; the last one includes all later output."""
        return REDRAWN.split(self.written)[1:]


def keep_picture(browser: "Browser", screen: str, title: str, name: str, folder: Path) -> Path:
    """Save a picture of a screen in a folder that is not committed, without network access.

    Parameters
    ----------
    browser : to draw it.
    screen : text with colour codes.
    title : of the window drawn around it.
    name : of the picture.
    folder : for the picture.
    """
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip()))
    drawn = WEB_FONT.sub("", console.export_svg(title=title, unique_id=name)).replace("Fira Code", FONT)
    page = folder / f"{name}.html"
    page.write_text(f'<meta charset="utf-8"><body style="margin:0">{drawn}', encoding="utf-8")
    width, height = (int(float(size)) for size in re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawn)[0])
    viewport = {"width": width, "height": height}
    with watched(browser, page.as_uri(), viewport=viewport, device_scale_factor=SCALE) as shown:
        shown.keep(name)
    return PICTURES / f"{name}.png"

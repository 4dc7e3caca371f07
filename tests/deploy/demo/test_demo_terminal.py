"""The demo in a terminal: a live table, then a page that stays up; and a picture of the table for README."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.aggregator.browser import chromium
from tests.support.deploy.terminal import Terminal, keep_picture

pytestmark = [pytest.mark.broker, pytest.mark.pictures]

STAYS_SECONDS = 240  # 90 s on an idle machine
END_SECONDS = 120
ROLL_UP = "All final windows of carrier as one answer: "
CURSOR_IS_BACK = "\x1b[?25h"  # so ends what is live


def test_it_is_live_then_stays_for_questions(kafka_jars: None, tmp_path: Path) -> None:
    with chromium() as browser, Terminal.running([sys.executable, "-m", "deniable", "demo"]) as terminal:
        assert terminal.read_until("(Ctrl-C ends the demo)", STAYS_SECONDS), terminal.written[-2000:]
        screens = terminal.screens()
        assert len(screens) > 20
        assert "\ndemo: ok\n" in terminal.written
        (command,) = re.findall(rf"^{ROLL_UP}(.*)$", terminal.written, re.MULTILINE)
        answer = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=END_SECONDS)
        assert re.match(r"[\d,]+ reports, 16 values, 95 % intervals", answer.stdout.strip()), answer.stderr
        picture = keep_picture(
            browser, screens[-1].split(CURSOR_IS_BACK)[0], "deniable demo", "terminal", tmp_path
        )
        assert picture.stat().st_size > 50_000
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(END_SECONDS) == 130

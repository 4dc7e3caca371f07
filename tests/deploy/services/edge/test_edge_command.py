"""`deniable edge`: what it refuses to start with, its key, TLS, the try page; it needs no Kafka to start."""

import json
import socket
import ssl
import subprocess
import sys
import urllib.request
from functools import partial

import pytest
from click.testing import CliRunner

from deniable.deploy.broker.child_processes import deniable_command, spawn, stop
from deniable.deploy.services.edge import command as pages
from deniable.deploy.services.edge.command import edge, try_files
from tests.support.brokers.secured.certificates import Authority
from tests.support.deploy.collection_texts import WHOLE
from tests.support.messages import PinMessages, refusal_of
from tests.support.paths import REPOSITORY
from tests.support.processes import new_port, wait_until

FILE = 'kafka: {bootstrap_servers: "127.0.0.1:9"}\nedge: {}\n' + WHOLE


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "deniable.yaml"
    path.write_text(FILE)
    return path


def run(file, *arguments):
    return subprocess.run(
        deniable_command("edge", "--config", str(file), *arguments),
        capture_output=True,
        text=True,
        check=False,
    )


def invoke(file, *arguments):
    return CliRunner().invoke(edge, ["--config", str(file), *arguments])


def test_file_without_the_section_is_refused(file):
    file.write_text(WHOLE)
    error = invoke(file, "--listen", "127.0.0.1:8330").exception
    assert str(error).startswith(f"{file}: there is no section edge")


def test_messages(file, pin_messages: PinMessages):
    messages = {"no address": refusal_of(invoke(file), 2)}
    assert not (file.parent / ".deniable").exists()
    file.write_text(FILE.replace("edge: {}", "edge: {signing_key_file: keys/edge.pem}"))
    messages["no configured key"] = str(invoke(file, "--show-key").exception)
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_key_is_shown_and_created_once(file):
    first = invoke(file, "--show-key").output
    assert len(first) == 45
    assert invoke(file, "--show-key").output == first
    assert (file.parent / ".deniable" / "edge-key.pem").stat().st_mode & 0o777 == 0o600


def test_try_files_have_the_page_and_the_client(monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "PAGE", tmp_path / "page")
    monkeypatch.setattr(pages, "CLIENT", tmp_path / "client")
    assert try_files() == {}
    for name in (
        "page/index.html",
        "page/page.js",
        "page/notes.txt",
        "client/deniable.min.js",
        "client/mechanisms.min.js",
        "client/x.js",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert {path: file.name for path, (_, file) in try_files().items()} == {
        b"/try": "index.html",
        b"/try/page.js": "page.js",
        b"/try/deniable.js": "deniable.min.js",
        b"/try/mechanisms.js": "mechanisms.min.js",
    }


@pytest.mark.slow
def test_errors_are_one_line(file, tmp_path):
    for fields, said in (
        ("certificate_file: c.pem, key_file: k.pem", f"certificate_file {tmp_path / 'c.pem'}: "),
        ("signing_key_file: deniable.yaml", str(tmp_path / "deniable.yaml")),
    ):
        file.chmod(0o644)
        file.write_text(FILE.replace("edge: {}", f"edge: {{{fields}}}"))
        done = run(file, "--listen", "127.0.0.1:1")
        assert (done.returncode, done.stdout) == (1, "")
        lines = [line for line in done.stderr.splitlines() if "created a new signing key" not in line]
        assert len(lines) == 1
        assert said in lines[0]
    file.write_text(FILE)
    done = run(file, "--listen", "192.0.2.1:8330")
    (line,) = done.stderr.splitlines()  # nothing about Kafka, which it need not ask
    assert line.startswith("Error: port 8330 of 192.0.2.1 ")


DEFECTS = {
    "keep": "the connection to Kafka",
    "tick": "the watch over waiting uploads",
    "watch": "the watch over connections",
    "files": "the watch over the certificate",
}


@pytest.mark.all
def test_an_edge_without_one_of_its_tasks_ends_with_one_line(file, tmp_path):
    """Else it would refuse all uploads, or let them wait, and look healthy."""
    issued = Authority("authority", tmp_path / "authority").issue("edge", server=True)
    (tmp_path / "c.pem").write_bytes(issued.certificate_file.read_bytes())
    (tmp_path / "k.pem").write_bytes(issued.key_file.read_bytes())
    file.write_text(FILE.replace("edge: {}", "edge: {certificate_file: c.pem, key_file: k.pem}"))
    children = {}
    for part in DEFECTS:
        port = new_port()
        listen = ("--config", str(file), "--listen", f"127.0.0.1:{port}")
        command = [sys.executable, "-m", "tests.support.edge.defect_process", part, *listen]
        children[part] = spawn(command, tmp_path / part, folder=REPOSITORY)
        if part == "watch":
            assert wait_until(lambda port=port: connects(port))
    try:
        for part, named in DEFECTS.items():
            assert children[part].wait(120) == 1
            log = (tmp_path / part).read_text()
            said = f"Error: {named} ended by a defect, KeyError in defect_process.py:19; please report it"
            assert log.splitlines()[-1] == said
            assert "Traceback" not in log
            assert "Mallory" not in log
    finally:
        stop(children.values())


def connects(port):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(("127.0.0.1", port), 20) as plain,
            context.wrap_socket(plain) as secured,
        ):
            return secured.recv(1) == b""  # the edge ends meanwhile
    except OSError:
        return False


@pytest.mark.slow
def test_it_serves_tls_without_kafka_and_reads_a_new_certificate(file, tmp_path):
    authority = Authority("authority", tmp_path / "authority")
    issued = authority.issue("edge", server=True)
    (tmp_path / "c.pem").write_bytes(issued.certificate_file.read_bytes())
    (tmp_path / "k.pem").write_bytes(issued.key_file.read_bytes())
    file.write_text(FILE.replace("edge: {}", "edge: {certificate_file: c.pem, key_file: k.pem}"))
    port = new_port()
    command = deniable_command("edge", "--config", str(file), "--listen", f"127.0.0.1:{port}")
    child = spawn(command, tmp_path / "log")
    context = ssl.create_default_context(cafile=str(authority.certificate_file))

    def get(path):
        try:
            with urllib.request.urlopen(
                f"https://127.0.0.1:{port}{path}", context=context, timeout=5
            ) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())
        except OSError:
            return None

    try:
        assert wait_until(lambda: get("/healthz") == (200, {"healthy": True}))
        assert get("/v1/collections")[1].keys() == {"signed", "signature", "public_key"}
        assert wait_until(lambda: get("/readyz")[1]["reasons"] == ["Kafka at 127.0.0.1:9: no broker answers"])
        assert get("/try") == (404, get("/x")[1])
    finally:
        stop([child])
    log = (tmp_path / "log").read_text()
    assert f"uploads: https://127.0.0.1:{port}/v1/reports\n" in log
    assert "Traceback" not in log

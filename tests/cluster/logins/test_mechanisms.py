"""Each mechanism has its own fields; without one, a section means what it meant before there were several."""

from functools import partial
from pathlib import Path

import pytest

from deniable.cluster.logins.mechanisms import (
    PlainLogin,
    Scram256Login,
    Scram512Login,
    TlsLogin,
    login_of,
)
from deniable.cluster.security import Security
from tests.support.messages import PinMessages

SECRET = "hunter2"
PASSWORD = {"username": "a", "password": SECRET}


def test_a_section_without_a_mechanism_means_what_it_did() -> None:
    assert isinstance(login_of(None, {}), TlsLogin)
    assert isinstance(login_of(None, {"username": None, "password_file": None}), TlsLogin)
    assert isinstance(login_of(None, PASSWORD), Scram512Login)
    assert Security(**PASSWORD).client_settings()["sasl_mechanism"] == "SCRAM-SHA-512"


def test_each_mechanism_of_passwords_reaches_clients() -> None:
    for mechanism, login in (
        ("PLAIN", PlainLogin),
        ("SCRAM-SHA-256", Scram256Login),
        ("SCRAM-SHA-512", Scram512Login),
    ):
        security = Security(mechanism=mechanism, **PASSWORD)
        assert isinstance(security.login, login)
        assert SECRET not in repr(security) + repr(security.login)
        settings = security.client_settings()
        assert (settings["security_protocol"], settings["sasl_mechanism"]) == ("SASL_SSL", mechanism)
        assert settings["sasl_plain_password"].encode() == SECRET.encode()


def test_plain_takes_the_user_name_of_event_hubs() -> None:
    assert Security(mechanism="PLAIN", username="$ConnectionString", password=SECRET).login
    with pytest.raises(ValueError, match="username"):
        Security(username="$ConnectionString", password=SECRET)


def test_messages(pin_messages: PinMessages) -> None:
    of = partial(partial, login_of)
    pin_messages(
        {
            "an unknown mechanism": of("GSSAPI", {}),
            "a field of another mechanism": of("TLS", PASSWORD),
            "no user name": of("PLAIN", {}),
            "two sources": of("PLAIN", {**PASSWORD, "password_file": Path("f")}),
            "a space in a user name": of("PLAIN", {**PASSWORD, "username": "a b"}),
            "a comma in a user name": of("SCRAM-SHA-256", {**PASSWORD, "username": "a,b"}),
            "a command without words": of("PLAIN", {"username": "a", "password_command": ()}),
        }
    )

"""Loopback ports: in use, out of range, free."""

import socket

import pytest

from deniable.deploy.broker import ports
from deniable.deploy.broker.errors import BrokerError
from deniable.deploy.broker.ports import free_port, require_free
from tests.support.messages import PinMessages


def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BrokerError, match=f"port {port} "):
            require_free(port)


def test_messages(pin_messages: PinMessages) -> None:
    def refusal_in_use() -> str:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            with pytest.raises(BrokerError) as refused:
                require_free(port)
        return str(refused.value).replace(str(port), "PORT")

    pin_messages(
        {
            "in use": refusal_in_use,
            "negative": lambda: require_free(-1),
            "too large": lambda: require_free(65_536),
        }
    )


def test_a_free_port_can_be_listened_on() -> None:
    with socket.create_server(("127.0.0.1", free_port())):
        pass


def test_restarted_broker_keeps_its_ports_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing listens there while it is down."""
    first = free_port()
    drawn = iter([first - ports.LOWEST_PORT, free_port(but=first) - ports.LOWEST_PORT])
    monkeypatch.setattr(ports.secrets, "randbelow", lambda _: next(drawn))
    assert free_port(but=first) != first

"""The type of options that take an address to listen on; imports little, since probes run `ready` often."""

from ipaddress import ip_address
from typing import Any

import click


class ListenAddress(click.ParamType):
    """An IP address of this machine and a port: ADDRESS:PORT, or [ADDRESS]:PORT for IPv6."""

    name = "address"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, int]:
        """Return address and port."""
        host, _colon, port = str(value).rpartition(":")
        try:
            address = ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
            if not (port.isascii() and port.isdecimal() and 0 < int(port) <= 65535):
                raise ValueError(port)
        except ValueError:
            self.fail(
                "must be an IP address and a port in [1, 65535], such as 127.0.0.1:9100 or [::1]:9100, "
                f"got {value!r}",
                parameter,
                context,
            )
        return str(address), int(port)

"""A broker as a careful operator would run it: TLS everywhere, nothing allowed by default."""

import secrets
import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialUpsertion,
)

from deniable.cluster.permissions.roles import Role
from deniable.deploy.broker.broker import STOP_SECONDS, Broker
from deniable.deploy.broker.child_processes import stop
from tests.support.brokers.secured.certificates import Authority, Issued
from tests.support.processes import new_port

ADMIN = "admin"
MECHANISM = "SCRAM-SHA-512"
ITERATIONS = 8192
SEEN_SECONDS = 20.0
NETWORK_THREADS = 3  # of each listener; Kafka's own default
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
PLAIN_USERS = tuple(f"plain-{role}" for role in Role)
SCRAMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")

#: Later lines override those of the embedded broker. INTERNAL is a listener for the broker itself, so it
#: reaches itself whatever certificate the clients' listeners show.
SETTINGS = """
listeners=INTERNAL://127.0.0.1:{internal},SASL_SSL://127.0.0.1:{sasl},SSL://127.0.0.1:{tls},PLAIN://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=INTERNAL://127.0.0.1:{internal},SASL_SSL://127.0.0.1:{sasl},SSL://127.0.0.1:{tls},PLAIN://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=INTERNAL:SSL,SASL_SSL:SASL_SSL,SSL:SSL,PLAIN:SASL_SSL,CONTROLLER:SSL
inter.broker.listener.name=INTERNAL
ssl.keystore.type=PEM
ssl.keystore.location={own}
ssl.truststore.type=PEM
ssl.truststore.location={trusted}
ssl.enabled.protocols=TLSv1.3,TLSv1.2
listener.name.internal.ssl.client.auth=required
listener.name.controller.ssl.client.auth=required
listener.name.ssl.ssl.client.auth=required
listener.name.ssl.ssl.keystore.type=PEM
listener.name.ssl.ssl.keystore.location={shown}
listener.name.sasl_ssl.ssl.keystore.type=PEM
listener.name.sasl_ssl.ssl.keystore.location={shown}
ssl.allow.dn.changes=true
ssl.allow.san.changes=true
ssl.principal.mapping.rules=RULE:^CN=([A-Za-z0-9_.-]+)$/$1/,DEFAULT
sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256
listener.name.plain.sasl.enabled.mechanisms=PLAIN
listener.name.plain.plain.sasl.jaas.config={plain_login}
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={login}
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={login}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=false
super.users=User:broker;User:admin
"""


class SecuredBroker(Broker):
    """The embedded broker without a plaintext listener; can be killed, paused and resumed.

    Parameters
    ----------
    settings : further settings of Kafka, such as {"message.max.bytes": 2000}; they override others.

    Once started, `authority` has signed its certificate and is trusted by it; `stranger` is not. The files of
    both are in `folder`.
    """

    authority: Authority
    stranger: Authority

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self._more = dict(settings or {})
        self._ports: dict[str, int] = {}
        self._passwords = {name: secrets.token_urlsafe(12) for name in (ADMIN, *PLAIN_USERS)}
        first = f"name={ADMIN},iterations={ITERATIONS},password={self._passwords[ADMIN]}"
        self._format_arguments += ["--add-scram", f"{MECHANISM}=[{first}]"]

    @property
    def bootstrap_servers(self) -> str:
        """Same as `sasl_servers`."""
        return self.sasl_servers

    @property
    def sasl_servers(self) -> str:
        """Address for clients with user name and password, `127.0.0.1:PORT`."""
        return f"127.0.0.1:{self._ports['sasl']}"

    @property
    def ssl_servers(self) -> str:
        """Address for clients with a certificate, `127.0.0.1:PORT`."""
        return f"127.0.0.1:{self._ports['tls']}"

    @property
    def plain_servers(self) -> str:
        """Address of a listener that takes passwords of `PLAIN_USERS`, but not by SCRAM, `127.0.0.1:PORT`."""
        return f"127.0.0.1:{self._ports['plain']}"

    def sasl_settings(self, user: str, password: str | None = None) -> dict[str, object]:
        """Return arguments for kafka-python and aiokafka; None: the password set by `add_user`."""
        return {
            "bootstrap_servers": self.sasl_servers,
            "security_protocol": "SASL_SSL",
            "ssl_context": self.authority.context(),
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": user,
            "sasl_plain_password": self._passwords[user] if password is None else password,
        }

    def ssl_settings(self, certificate: Issued | None) -> dict[str, object]:
        """Return arguments for kafka-python and aiokafka clients with this certificate, or none."""
        return {
            "bootstrap_servers": self.ssl_servers,
            "security_protocol": "SSL",
            "ssl_context": self.authority.context(certificate),
        }

    def admin_settings(self) -> dict[str, object]:
        """Return arguments for kafka-python and aiokafka clients of the superuser, by SCRAM."""
        return self.sasl_settings(ADMIN)

    def client_certificate(self, common_name: str) -> Issued:
        """Issue a client certificate; the broker names its principal `User:` and this name."""
        return self.authority.issue(common_name, client=True, addresses=(), names=())

    def add_user(self, name: str, password: str | None = None) -> str:
        """Create a user or change its password (None: a random one); return it once it is accepted."""
        password = password or secrets.token_urlsafe(12)
        with self._own_client() as admin:
            for mechanism in SCRAMS:
                wanted = UserScramCredentialUpsertion(name, mechanism, password, iterations=ITERATIONS)
                answers = admin.alter_user_scram_credentials([wanted])
                if failed := {user: why for user, why in answers.items() if why}:
                    raise RuntimeError(f"no password for {name}: {failed}")
        self._passwords[name] = password
        self._wait_until_accepted(name)
        return password

    def change_password(self, name: str, password: str | None = None) -> str:
        """Change a password; connections opened with the former one stay open."""
        return self.add_user(name, password)

    def allow(self, user: str, resource: ResourcePattern, *operations: ACLOperation) -> None:
        """Allow operations on a resource from every host; return once the broker applies it."""
        self.allow_all(user, [(resource, each) for each in operations])

    def allow_all(self, user: str, allowed: Collection[tuple[ResourcePattern, ACLOperation]]) -> None:
        """Allow each operation on its resource, over one connection."""
        rules = [_rule(user, operation, resource) for resource, operation in allowed]
        with self._own_client() as admin:
            failed = admin.create_acls(rules)["failed"]
            if failed:
                raise RuntimeError(f"{user} cannot be allowed {allowed}: {failed}")
            _wait(lambda: set(rules) <= set(admin.describe_acls(_of(user))[0]), f"the permissions of {user}")

    def disallow(self, user: str) -> None:
        """Remove all permissions of a user; return once the broker applies it."""
        with self._own_client() as admin:
            admin.delete_acls([_of(user)])
            _wait(lambda: not admin.describe_acls(_of(user))[0], f"{user} without permissions")

    def replace_broker_certificate(self, certificate: Issued | None = None) -> None:
        """Present another certificate to new connections; None: a new valid one."""
        shown = certificate or self._good_certificate()
        both = ("listener.name.sasl_ssl", "listener.name.ssl")
        configs = {f"{each}.ssl.keystore.location": str(shown.chain_file) for each in both}
        wanted = ConfigResource(ConfigResourceType.BROKER, "1", configs=configs)
        with self._own_client() as admin:
            # The client's check of setting names does not know names of listeners.
            answer = admin.alter_configs([wanted], raise_on_unknown=False)["broker"]["1"]
        if answer != "OK":
            raise RuntimeError(f"the broker refuses the certificate of {shown.common_name}: {answer}")
        for name in ("sasl", "tls"):
            _wait(lambda port=self._ports[name]: _is_shown(port, shown), "the other certificate")

    @contextmanager
    def showing(self, certificate: Issued) -> Iterator[None]:
        """Present a certificate to connections within the block, then a valid one again."""
        self.replace_broker_certificate(certificate)
        try:
            yield
        finally:
            self.replace_broker_certificate()

    def restart(self) -> None:
        """Stop it with SIGTERM, after 20 s with SIGKILL, and restart it with the same ports and data."""
        if self._child is not None:
            stop([self._child], STOP_SECONDS)
        self.start()

    def _good_certificate(self) -> Issued:
        return self.authority.issue("broker", server=True)

    def _own_client(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{self._port}", **self._client_settings)

    def _wait_until_accepted(self, user: str) -> None:
        # It retries until it is accepted, whatever certificate the broker presents.
        unverified = self.authority.context()
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        settings = {**self.sasl_settings(user), "ssl_context": unverified}
        KafkaAdminClient(**settings, bootstrap_timeout_ms=SEEN_SECONDS * 1000).close()

    def _configure(self, folder: Path, port: int) -> None:
        super()._configure(folder, port)
        if not self._client_settings:
            self._issue(folder / "certificates")
        if self._port == 0:
            self._ports = _other_ports(port)
        users = " ".join(f'user_{name}="{self._passwords[name]}"' for name in PLAIN_USERS)
        lines = SETTINGS.format(
            internal=port,
            login=LOGIN,
            plain_login=PLAIN_LOGIN.format(users=users),
            **self._ports,
            **self._files,
        )
        lines += "".join(f"{key}={value}\n" for key, value in self._more.items())
        with (folder / "server.properties").open("a") as settings:
            settings.write(
                f"controller.quorum.bootstrap.servers=127.0.0.1:{self._ports['controller']}\n{lines}"
            )

    def _issue(self, folder: Path) -> None:
        self.authority = Authority("authority", folder)
        self.stranger = Authority("stranger", folder)
        own = self.authority.issue("broker", server=True, client=True)
        self._files = {
            "own": own.chain_file,
            "trusted": self.authority.certificate_file,
            "shown": self._good_certificate().chain_file,
        }
        self._client_settings = {"security_protocol": "SSL", "ssl_context": self.authority.context(own)}


def _other_ports(port: int) -> dict[str, int]:
    ports = {port}
    while len(ports) < 5:
        ports.add(new_port())
    return dict(zip(("sasl", "tls", "plain", "controller"), ports - {port}, strict=True))


def _rule(user: str, operation: ACLOperation, resource: ResourcePattern) -> ACL:
    return ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, resource)


def _of(user: str) -> ACLFilter:
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    return ACLFilter(f"User:{user}", None, ACLOperation.ANY, ACLPermissionType.ANY, anything)


def _is_shown(port: int, certificate: Issued) -> bool:
    """Whether all network threads present it: they accept connections in turn and switch one by one."""
    return all(_shown_at(port) == certificate.der for _ in range(2 * NETWORK_THREADS))


def _shown_at(port: int) -> bytes:
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
        unverified.wrap_socket(plain) as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""


def _wait(seen: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SEEN_SECONDS
    while not seen():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the broker does not show {what} within {SEEN_SECONDS:g} s")
        time.sleep(0.02)

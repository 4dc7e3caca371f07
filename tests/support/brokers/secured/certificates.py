"""Certificates as an operator's authority would issue them, and ones that clients must refuse."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """One certificate (P-256) and its private key (PKCS#8), each a PEM file of mode 0600."""

    common_name: str
    certificate_file: Path
    key_file: Path
    chain_file: Path  # key, certificate and authority in one file, as Kafka's keystore requires
    der: bytes


class Authority:
    """A root certificate authority.

    Parameters
    ----------
    name : its common name.
    folder : for its files and those that it issues; created if absent.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = _named(name, name, self._key, datetime.now(UTC) + 30 * DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.certificate_file = _write(folder / f"{name}-{self._certificate.serial_number:x}.crt", self._pem)

    @property
    def _pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        common_name: str,
        *,
        addresses: Sequence[str] = ("127.0.0.1",),
        names: Sequence[str] = ("localhost",),
        server: bool = False,
        client: bool = False,
        not_after: datetime | None = None,
    ) -> Issued:
        """Sign a new key, valid until `not_after` (with a time zone, may be past); None: for a day."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _named(common_name, self.name, key, not_after or datetime.now(UTC) + DAY)
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(authority_key, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH] * server + [ExtendedKeyUsageOID.CLIENT_AUTH] * client
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        hosts = [x509.IPAddress(ip_address(each)) for each in addresses] + [x509.DNSName(n) for n in names]
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return self._store(common_name, key, builder.sign(self._key, hashes.SHA256()))

    def context(self, client: Issued | None = None) -> ssl.SSLContext:
        """Return settings of a client that trusts only this CA, with a certificate if given."""
        context = ssl.create_default_context(cafile=str(self.certificate_file))
        if client is not None:
            context.load_cert_chain(client.certificate_file, client.key_file)
        return context

    def _store(self, common_name: str, key: ec.EllipticCurvePrivateKey, signed: x509.Certificate) -> Issued:
        stem = f"{common_name}-{signed.serial_number:x}"
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        pem = signed.public_bytes(serialization.Encoding.PEM)
        return Issued(
            common_name,
            certificate_file=_write(self._folder / f"{stem}.crt", pem),
            key_file=_write(self._folder / f"{stem}.key", key_pem),
            chain_file=_write(self._folder / f"{stem}.pem", key_pem + pem + self._pem),
            der=signed.public_bytes(serialization.Encoding.DER),
        )


def _named(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.now(UTC), not_after) - DAY)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)
    return path

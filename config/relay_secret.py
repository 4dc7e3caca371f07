"""The relays' secret that the collection file names, or its default."""

from deniable.config.file import Configuration
from deniable.config.sections import RelaySection
from deniable.protocol.secrets.secret import Secret, SecretError, load_secret, read_secret

SECRET_FILE = ".deniable/relay-secret"  # noqa: S105 - a name
LOSS = "would leave relays unable to read the topic of uploads"


def relay_secret(configuration: Configuration, *, creates: bool = True) -> Secret:
    """Read the secret of the relays; create it only if the file names none.

    Raises
    ------
    SecretError if it cannot be used, or is missing although the file names it, or although it is only read.
    """
    named = (configuration.relay or RelaySection()).secret_file
    path = configuration.path.parent / (named or SECRET_FILE)
    if named and not path.exists():
        raise SecretError(
            f"secret file {path}: it is missing, and a configured one is never created; copy there the one "
            f"that all relays share, or create the first: (umask 077; head -c 32 /dev/urandom > {path})"
        )
    if not creates and not path.exists():
        raise SecretError(f"secret file {path}: it is missing; copy there the one that the relays have")
    return load_secret(path, LOSS) if creates else read_secret(path, LOSS)

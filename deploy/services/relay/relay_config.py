"""A relay's configuration from the collection file."""

from deploy.config.file import Configuration
from deploy.config.sections import RelaySection
from producers.randomization.secret import Secret, SecretError, load_secret, read_secret
from producers.wire import mechanism_number
from relay.control import Intake, RelaySettings
from relay.keys import RelayKeys
from relay.service.service import RelayConfig

SECRET_FILE = ".deniable/relay-secret"  # noqa: S105 - a name
LOSS = "would leave relays unable to read the topic of uploads"


def relay_keys(configuration: Configuration, *, creates: bool = True) -> RelayKeys:
    """Read the secret of the relays; create it only if the file names none.

    Raises
    ------
    SecretError if it cannot be used, or is missing although the file names it, or although it is only read.
    """
    return RelayKeys(_secret(configuration, creates))


def _secret(configuration: Configuration, creates: bool) -> Secret:
    named = _section(configuration).secret_file
    path = configuration.path.parent / (named or SECRET_FILE)
    if named and not path.exists():
        raise SecretError(
            f"secret file {path}: it is missing, and a configured one is never created; copy there the one "
            f"that all relays share, or create the first: (umask 077; head -c 32 /dev/urandom > {path})"
        )
    if not creates and not path.exists():
        raise SecretError(f"secret file {path}: it is missing; copy there the one that the relays have")
    return load_secret(path, LOSS) if creates else read_secret(path, LOSS)


def relay_config(configuration: Configuration, keys: RelayKeys) -> RelayConfig:
    """Build a relay's configuration. Canaries are included: they check the way from producers over HTTP."""
    section, topics = _section(configuration), configuration.topics
    settings = RelaySettings(
        revision=configuration.revision,
        partitions=topics.partitions,
        batch_reports=section.batch_reports,
        shuffle_reports=section.shuffle_reports,
        pack_reports=section.pack_reports,
        window_uploads=section.window_uploads,
        key_check=keys.check,
        collections=tuple(
            Intake(
                each.fingerprint,
                mechanism_number(each.mechanism),
                each.width,
                each.cohorts,
                each.window_seconds,
                each.grace_seconds - section.delivery_seconds,
            )
            for each in configuration.collections
        ),
    )
    return RelayConfig(
        cluster=configuration.cluster,
        uploads=topics.uploads,
        reports=topics.reports,
        rejected=topics.rejected_uploads,
        group=topics.relay_group,
        report_partitions=topics.partitions,
        settings=settings,
        idle_seconds=section.idle_seconds,
        names={each.fingerprint: each.name for each in configuration.collections},
    )


def _section(configuration: Configuration) -> RelaySection:
    return configuration.relay or RelaySection()

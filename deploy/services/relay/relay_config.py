"""A relay's configuration from the collection file."""

from deploy.config.file import Configuration
from deploy.config.sections import RelaySection
from producers.wire import mechanism_number
from relay.control import Intake, RelaySettings
from relay.keys import RelayKeys
from relay.service.service import RelayConfig


def relay_config(configuration: Configuration, keys: RelayKeys) -> RelayConfig:
    """Build a relay's configuration. Canaries are included: they check the way from producers over HTTP."""
    section, topics = configuration.relay or RelaySection(), configuration.topics
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

"""A relay's configuration from the collection file."""

from collections.abc import Iterable
from contextlib import suppress

from deniable.config.file import Configuration
from deniable.config.sections import RelaySection
from deniable.config.settings.allowance import Allowance
from deniable.estimators.accounting.shuffling.blanket import ShufflingRefusedError
from deniable.estimators.accounting.shuffling.honest import HonestShuffle
from deniable.protocol.wire import mechanism_number
from deniable.relay.control import Intake, RelaySettings
from deniable.relay.keys import RelayKeys
from deniable.relay.service.service import RelayConfig


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
        rhythms=tuple((each.window_seconds, each.grace_seconds) for each in configuration.collections),
        names={each.fingerprint: each.name for each in configuration.collections},
        shuffles=_shuffles(configuration.allowances, section.forged_share),
    )


def _shuffles(allowances: Iterable[Allowance], forged_share: float) -> dict[int, HonestShuffle]:
    """Return what is known beforehand of shuffled reports, by fingerprint, where they have an epsilon."""
    found: dict[int, HonestShuffle] = {}
    for each in allowances:
        mechanism = each.collection.mechanism
        with suppress(ShufflingRefusedError):
            found[each.collection.fingerprint] = HonestShuffle.of(
                mechanism, each.delta, forged_share, each.memoized, each.reports_per_window
            )
    return found

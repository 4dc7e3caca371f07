"""Names of the topics, groups and transactional ids, all behind one prefix."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Topics:
    """Names of one deployment's topics.

    Parameters
    ----------
    prefix : of every name, such as `deniable-`.
    partitions : of every topic; never changes, since pack ids depend on it.
    takes_uploads : whether the deployment has the topics of edges and relays.
    """

    prefix: str
    partitions: int
    takes_uploads: bool = False

    @property
    def reports(self) -> str:
        """Packs of randomized reports, as sent by producers."""
        return f"{self.prefix}reports"

    @property
    def state(self) -> str:
        """The ledgers (compacted), one partition for each of `reports`."""
        return f"{self.prefix}state"

    @property
    def counts(self) -> str:
        """Counts by collection (compacted), the input of estimates."""
        return f"{self.prefix}counts"

    @property
    def rejected(self) -> str:
        """Reason and source offset of every rejected pack; no payload."""
        return f"{self.prefix}rejected"

    @property
    def estimates(self) -> str:
        """Estimates with their errors, one JSON record each."""
        return f"{self.prefix}estimates"

    @property
    def windows(self) -> str:
        """Merged counts of final windows, the input of roll-ups and later decodings."""
        return f"{self.prefix}windows"

    @property
    def collections(self) -> str:
        """What the workers count (compacted), by collection, for producers to compare with."""
        return f"{self.prefix}collections"

    @property
    def uploads(self) -> str:
        """Uploads of devices, as written by edges, with the control records of relays."""
        return f"{self.prefix}uploads"

    @property
    def rejected_uploads(self) -> str:
        """Reason and number of rejected groups of uploads, by batch; no payload."""
        return f"{self.prefix}rejected-uploads"

    @property
    def relay_group(self) -> str:
        """Consumer group of the relays."""
        return f"{self.prefix}relay"

    @property
    def group(self) -> str:
        """Consumer group of the aggregator's workers."""
        return f"{self.prefix}aggregator"

    @property
    def transactional_ids(self) -> str:
        """Prefix of the ids of all ledgers' producers."""
        return f"{self.group}-"

    @property
    def reader_groups(self) -> str:
        """Prefix of the consumer groups of apps that read estimates."""
        return f"{self.prefix}reader-"

    def transactional_id(self, partition: int) -> str:
        """Id of the only producer that may write this partition's ledger."""
        return f"{self.transactional_ids}{partition}"

    def counts_partition(self, fingerprint: int) -> int:
        """Partition of `counts`, and of `windows`, that holds a collection's rows."""
        return fingerprint % self.partitions

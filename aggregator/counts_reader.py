"""Reading a partition of `counts`, where other programs may have written too."""

from collections.abc import Callable

import structlog

from aggregator import row_keys
from aggregator.row_reader import Record, RowReader
from aggregator.rows import RowError

log = structlog.get_logger()


async def read_counts(reader: RowReader, sources: int, take: Callable[[bytes, bytes | None], None]) -> None:
    """Read what there is, to an end of the log; warn of records that are none of ours.

    Compaction may have moved a row behind the progress that was committed with it: so what is read is
    complete only at an end. While a long log is read for the first time, it may even move one behind the end
    that was asked for: so the first end is no such end yet.

    Parameters
    ----------
    reader : of the partition; it goes on where it stopped.
    sources : number of partitions that count.
    take : called with key and value of each record of ours.

    Raises
    ------
    RowError when one of ours cannot be read; KafkaError; TimeoutError.
    """
    foreign = [
        record.offset async for record in reader.until_end() if not _taken(record, reader, sources, take)
    ]
    if foreign:
        log.warning(
            "records that are none of ours are passed over",
            topic=reader.topic_partition.topic,
            partition=reader.topic_partition.partition,
            records=len(foreign),
            first_offset=foreign[0],
        )


def _taken(
    record: Record, reader: RowReader, sources: int, take: Callable[[bytes, bytes | None], None]
) -> bool:
    key = record.key or b""
    if row_keys.is_foreign(key, sources):
        return False
    try:
        take(key, record.value)
        return True
    except RowError as error:
        source = reader.topic_partition
        place = f"offset {record.offset} of partition {source.partition} of {source.topic}"
        raise RowError(
            f"{place}: {error}. If another program wrote it: stop all workers, delete that topic and run "
            f"deniable topics create; what is counted is published again"
        ) from error

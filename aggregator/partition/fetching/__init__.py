"""From the bytes of a fetch to runs of records, and the unbroken chain of their offsets.

May import no sibling. Begin with `offset_chain`; `record_batches` reads Kafka's format, and `run_fetching`
has aiokafka hand over runs instead of records; `freed_memory` saves page faults.
"""

"""Workers on a real broker: throughput, latency, and other stream processors on the same log.

May import no sibling. Begin with `end_to_end`; `workers` starts ours, `peer_readers` starts theirs.
"""

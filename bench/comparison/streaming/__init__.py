"""Workers on a real broker: throughput, delays, and other stream processors on the same log.

May import `runners` and `timing`. Begin with `end_to_end`; `workers` starts ours, `peer_readers` theirs.
"""

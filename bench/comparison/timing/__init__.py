"""Child processes, also in the environment of the peers, and the processor time of their jobs.

May import no sibling. Begin with `contestant`; `rounds` interleaves repetitions so that noise of the machine
affects all alike.
"""

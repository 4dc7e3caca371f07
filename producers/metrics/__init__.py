"""A producer's counters, and the metrics computed from them.

May import `concurrency`. Begin with `counters`; `definitions` names every metric with its meaning.
"""

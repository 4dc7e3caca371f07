"""What a producer counts, and the metrics made of it.

May import `concurrency`. Begin with `counters`; `definitions` names every metric with its meaning.
"""

"""What runs for as long as a deployment does: workers, the edge that devices reach, and the relay.

May import `config`, `cli` and `cluster`. Its sub-packages know nothing of each other. Begin with `aggregate`.

edge        the command that runs an edge
aggregate   commands of the aggregator: run workers, check readiness, replay, retire
"""

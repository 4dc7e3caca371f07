"""What grows with a deployment: partitions, collections, ids of packs, and windows that come and go.

May import `deployments`, `throughput` and `worker`. Begin with `partitions`.
"""

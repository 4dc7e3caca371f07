"""The path of devices: HTTP clients, two edges, two relays and two workers under faults. Begin with `run`."""

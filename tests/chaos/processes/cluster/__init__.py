"""Three real brokers whose links to each other can be cut. Begin with `cluster`."""

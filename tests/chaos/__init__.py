"""Workers under every fault on a real broker, judged by an independent recount. Begin with `run`."""

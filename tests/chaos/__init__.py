"""Fault injection: workers on a real broker, checked by an independent recount. Begin with `run`."""

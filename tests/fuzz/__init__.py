"""Decoders under arbitrary bytes: each may raise only the error that it declares. Begin with `targets`."""

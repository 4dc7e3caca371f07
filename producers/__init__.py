"""True value in, randomized bytes out; owns the wire format."""

"""How Bloom RAPPOR counts are decoded, from design and likelihood to errors, for `rappor_decode`."""

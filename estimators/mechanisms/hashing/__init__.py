"""Hashing of texts: local hashing, its shared functions, and RAPPOR's Bloom filters.

May import `directed_rounding`, `krr`, `longitudinal_krr`, `rappor` and `traits`. Begin with `local_hash`;
`hash_functions` hashes values, by the linear functions of `function_block`.
"""

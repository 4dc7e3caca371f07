"""Secrets in files, and what producers, browsers and relays compute with them alike.

May import no sibling. Begin with `secret`; `private_file` is a file that nobody else reads, `aes` and
`order` are a keyed function and a keyed order.
"""

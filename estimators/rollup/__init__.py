"""One estimate over several windows, with errors for independent and for returning clients.

May import `decoding`, `frequency`, `mechanisms` and `arrays`. Begin with `overlap`: what such an estimate is.
`matrix`, `hashed` and `rappor` make it, by kind of mechanism; `one_thread` keeps its
figures independent of the number of cores.
"""

"""What threads of a producer import at first use, all at once: see `fork_hooks.import_in_thread`.

Packs are encoded with `crc32c`; looking up a host's address needs `idna`, and a forked child would remember
its half import as an unknown encoding; numpy imports `ma` on the first call of `unique`.
"""

import encodings.idna  # noqa: F401

import crc32c  # noqa: F401
import numpy.ma  # noqa: F401

"""How it is put together and run; the only room that may import all others."""

import os

# Here, since it must come before numpy is first imported. With several threads OpenBLAS waits for a busy core
# at each small product: a decoding that takes 3 ms then takes 140 ms beside a broker.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

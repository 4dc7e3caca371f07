"""HTTP: what is answered to which request, and the sockets.

May import `collection_list`, `intake`, `metrics` and `sending`. Begin with `requests`, a pure function of a
request; `connection` reads and writes the bytes.
"""

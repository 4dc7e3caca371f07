"""Decoding RAPPOR windows: time and errors compared with least squares and Lasso of other libraries.

May import `client`. Begin with `decoding`.
"""

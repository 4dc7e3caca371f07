"""Decoding RAPPOR windows: time and errors compared with least squares and Lasso of other libraries.

May import `timing`. Begin with `decoding`.
"""

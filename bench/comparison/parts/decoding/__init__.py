"""Decoding RAPPOR windows: milliseconds and errors beside least squares and lasso of other libraries.

Begin with `decoding`.
"""

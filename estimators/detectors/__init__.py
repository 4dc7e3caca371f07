"""Detectors over windows: of forged reports, and of changes of a share.

May import `arrays`, `collection`, `frequency` and `mechanisms`. Begin with `share_changes`.
"""

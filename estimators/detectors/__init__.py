"""Detectors over windows: of forged reports, and of changes of a share.

May import `mechanisms`, `frequency` and `arrays`. Begin with `share_changes`.
"""

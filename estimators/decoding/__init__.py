"""Estimators of candidate frequencies from RAPPOR bit counts.

May import `frequency`, `mechanisms` and `arrays`. Begin with `bloom`, which runs the steps in order:
`design`, `screening`, `equations`, `likelihood`, `sandwich_errors`. One-hot and k-hot
reports: `hot`.
"""

"""The topics of a deployment, and whether those that exist fit.

May import `cluster`, `finding`, `connection` and `permissions`. Begin with `plan`; `findings` describes what
does not fit, `limits` which settings only work at first, and `checks` is what programs ask before they begin.
"""

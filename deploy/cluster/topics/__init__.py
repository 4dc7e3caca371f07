"""Create and check the topics, and note which log `state` counts.

May import `finding`, `connection` and `permissions`. Begin with `plan` and `setup`; `findings` describes what
does not fit.
"""

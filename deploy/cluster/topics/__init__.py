"""Creating and checking the topics, and the identity of the log that `state` counts.

May import `connection` and `permissions`. Begin with `plan` and `setup`; `findings` says what does not fit.
"""

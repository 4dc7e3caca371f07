"""Create and check the topics, and note which log `state` counts.

May import `permissions`. Begin with `setup`.
"""

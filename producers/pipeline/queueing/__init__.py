"""What waits between threads, and the thread that takes it.

May import no sibling. Begin with `submission`.
"""

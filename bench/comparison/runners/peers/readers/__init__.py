"""Programs of other libraries that read a full log, or count it. They import nothing of this project.

May import no sibling. Begin with `aiokafka_read`.
"""

"""Jobs of other libraries, called as their documentation shows. These modules import nothing of this project.

May import no sibling. Begin with `pure_ldp_runner`.
"""

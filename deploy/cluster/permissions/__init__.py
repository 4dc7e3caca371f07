"""ACLs and quotas of a deployment's principals.

May import no sibling. Begin with `acls`.
"""

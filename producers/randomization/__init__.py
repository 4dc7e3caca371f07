"""All that makes a report deniable: the secret, random words, permanent responses, randomizers.

May import no sibling. Begin with `randomizers`; a privacy audit can stay in this sub-package.
"""

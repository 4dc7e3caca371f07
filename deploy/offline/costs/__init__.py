"""What `account`, `plan` and `check` add: costs of shuffled reports, the plot, and memory.

May import no sibling. Begin with `shuffled_cost`.
"""

"""What `account` and `plan` add to their tables: costs of shuffled reports, and the plot.

May import no sibling. Begin with `shuffled_cost`.
"""

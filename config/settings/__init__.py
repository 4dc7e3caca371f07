"""Plain settings of programs that the collection file gives.

May import no sibling. Begin with `allowance`, what one collection may cost a client; `spending_terms` are the
stored part of it, `budget_database` and `edge_address` are where budgets are kept and reports delivered.
"""

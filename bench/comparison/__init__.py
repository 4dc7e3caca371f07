"""Ours beside its alternatives, in turn on one machine.

Each module with CASES measures one job: `clients`, `counting`, `estimation`, `recording`, `decoding` and
`streaming`. `runners` holds the jobs of child processes, `timing` times them, `rivals` compares. May import
`aggregator`, `estimators` and `sections`. Begin with `counting`.
"""

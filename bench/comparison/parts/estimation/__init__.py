"""Estimating k-RR windows: MLE* compared with iterative Bayesian update, and with sorting the same numbers.

May import `decoding`. Begin with `estimation`.
"""

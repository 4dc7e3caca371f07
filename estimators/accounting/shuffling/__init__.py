"""Epsilon of reports that were shuffled together: the privacy blanket, enclosed from both sides.

May import `privacy_loss` and `composition`. Begin with `blanket`, which says what is bounded, and for whom;
then `amplification`, which solves for epsilon.
"""

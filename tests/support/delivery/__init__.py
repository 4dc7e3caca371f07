"""Edges that producers deliver to: a fake one that answers as told, and a real one."""

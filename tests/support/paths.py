"""Paths of the repository and the test vectors."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
VECTORS = Path(__file__).with_name("vectors")

"""Where the repository and the vectors are."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
VECTORS = Path(__file__).with_name("vectors")

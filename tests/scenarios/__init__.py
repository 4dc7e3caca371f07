"""Tests of several sub-packages together, in the folder of the highest package that they need."""

"""The mathematics: mechanisms, hashing, estimators. No input or output, no clock, no randomness."""

"""The load of a run: valid and malformed packs, sent once or twice, and foreign transactions."""

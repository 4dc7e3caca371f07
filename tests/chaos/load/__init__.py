"""What is sent during a run: packs valid and malformed, once or twice, and in transactions of others."""

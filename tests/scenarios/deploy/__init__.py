"""Commands as users run them, alone and with a real broker."""

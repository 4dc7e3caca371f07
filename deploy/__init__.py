"""How it is put together and run; the only room that may import all others."""

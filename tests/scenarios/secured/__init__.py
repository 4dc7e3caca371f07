"""A broker with passwords, certificates and permissions."""

"""A broker with TLS, passwords and ACLs, its certificates, and deployments that connect to it."""

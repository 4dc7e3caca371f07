"""Collection files, doctors, overlays, Prometheus and terminals for tests of commands and deployment."""

"""Broker, network, topics and workers of a run: started, stopped, and broken at named points."""

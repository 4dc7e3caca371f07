"""The faults by name, and what each of them does during a run."""

"""The faults by name, and what each does during a run."""

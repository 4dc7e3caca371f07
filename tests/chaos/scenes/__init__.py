"""What takes part in a run: processes, load, and how both are judged. Begin with `scene`."""

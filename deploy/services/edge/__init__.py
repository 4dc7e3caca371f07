"""The command that runs an edge. May import no sibling. Begin with `command`."""

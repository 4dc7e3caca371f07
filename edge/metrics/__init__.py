"""What an edge counts. May import no sibling. Begin with `definitions`."""

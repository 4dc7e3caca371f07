"""The command that runs an edge. May import `reload`. Begin with `command`."""

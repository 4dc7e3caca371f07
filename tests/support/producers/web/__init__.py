"""Web servers that run the recipes of docs/recording.md, and clients that count their answers."""

"""The recipes of docs/recording.md on real servers, as the page shows them; what each worker model loses."""

"""Workers from records to counts: exact, whatever is lost, doubled or shared."""

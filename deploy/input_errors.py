"""What goes wrong with an input. No message holds a value, a client's id or a line's text."""


class FeedError(RuntimeError):
    """The input cannot be used, or stops being of use at a line."""

"""Words that all programs say alike."""


def number_of(count: int, thing: str, form: str = "") -> str:
    """Return a count with its noun, singular or plural; `form` is the format of the count, such as `,`."""
    return f"{count:{form}} {thing}{'' if count == 1 else 's'}"

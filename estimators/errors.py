"""The root of all errors that a user or an operator can mend."""


class DeniableError(Exception):
    """Something that the reader of the message can mend: commands print it in one line, without a traceback.

    Attributes
    ----------
    exit_status : of a command that ends with it. 1; 3 where starting again mends nothing, since stored
        ledgers refuse it.
    """

    exit_status = 1

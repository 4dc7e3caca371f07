"""Why a relay ends."""

from deniable.estimators.errors import DeniableError


class RelayError(DeniableError, RuntimeError):
    """No retry mends it. The message says what is wrong, and the remedy."""

    exit_status = 3

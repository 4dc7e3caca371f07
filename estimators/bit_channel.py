"""What decoding knows of a RAPPOR mechanism of any kind: how true bits become reported ones."""

from typing import Protocol


class BitChannel(Protocol):
    """P(report 1) of every bit by its true value, both steps of randomization together; p* < q*."""

    @property
    def p_star(self) -> float:
        """P(report 1 | true bit 0), in (0, q*)."""

    @property
    def q_star(self) -> float:
        """P(report 1 | true bit 1), in (p*, 1)."""

"""`deniable estimate` with its commands."""

from deploy.estimate_command import estimate
from deploy.estimate_rappor_command import rappor_command

__all__ = ["estimate"]

estimate.add_command(rappor_command)

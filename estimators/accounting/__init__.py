"""The privacy loss of reports as an exact distribution and the bounds drawn from it, for `account`."""

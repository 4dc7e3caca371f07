"""`python -m deploy` is the command `deniable`."""

from deploy.cli import main

main()

"""`python -m deploy` is the command `deniable`."""

from deploy.cli.main import main

main()

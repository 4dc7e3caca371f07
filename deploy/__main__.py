"""Run the command `deniable` as `python -m deploy`."""

from deploy.cli.main import main

main()

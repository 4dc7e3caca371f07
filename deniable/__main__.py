"""Run the command `deniable` as `python -m deniable`."""

from deniable.deploy.cli.main import main

main()

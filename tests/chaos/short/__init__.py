"""Short runs for `make test-all`, longer ones for `make test-nightly`, and tests of the suite itself."""

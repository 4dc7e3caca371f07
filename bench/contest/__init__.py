"""`make bench`: this project and what users would pick instead, in one run on one machine."""

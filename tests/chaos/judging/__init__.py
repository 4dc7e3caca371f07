"""The verdict on a run: an independent recount compared with stored counts, and gaps in the service."""

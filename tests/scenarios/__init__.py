"""Tests of what spans several rooms: whole processes, faults, a report on its way from end to end."""

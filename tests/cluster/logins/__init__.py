"""Tests of logins."""

"""Tests of the browser client: its sources in Node, and the module in a real Chromium."""

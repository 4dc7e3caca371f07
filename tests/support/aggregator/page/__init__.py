"""What tests of the page share beside the browser: axe-core, and many collections."""

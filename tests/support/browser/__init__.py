"""What tests of the browser client share: Node, scripts that run in it, and what Python makes of the same words."""

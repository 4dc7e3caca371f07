"""What tests of the browser client share: Node, its scripts, and what Python makes of the same words."""

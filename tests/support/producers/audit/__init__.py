"""The audit of randomizers: lower bounds on epsilon from outputs, and broken ones that it must fail."""

"""What is measured, a file for each part of the results."""

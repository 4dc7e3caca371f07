"""What children run, a file for each library and job; those of peers import nothing of this project."""

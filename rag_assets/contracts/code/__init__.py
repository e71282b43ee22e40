"""Reading the project's Python source: what a piece of code is, and what it reaches."""

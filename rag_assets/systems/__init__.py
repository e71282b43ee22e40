"""The systems under evaluation: how they are declared, loaded and called."""

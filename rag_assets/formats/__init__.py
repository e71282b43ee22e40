"""Files of other tools, and the projects that are made of them."""

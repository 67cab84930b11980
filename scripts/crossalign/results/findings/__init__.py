"""What the papers found, a function each, and how a run judges it."""

"""The page that people open: all items of a run beside what was printed, in one file."""

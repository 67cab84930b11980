"""The findings of `talk`."""

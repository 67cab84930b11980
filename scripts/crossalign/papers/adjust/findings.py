"""The findings of `adjust`."""

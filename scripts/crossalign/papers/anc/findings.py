"""The findings of `anc`."""

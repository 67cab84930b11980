"""Readers, writers and checks of every format: raw downloads in, one plain form per task out."""

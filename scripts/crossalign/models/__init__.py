"""Encoders, norm schemes, task heads, re-initialisation."""

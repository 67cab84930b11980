"""Vectors of sentences and words from any layer of any model, on one or several devices."""

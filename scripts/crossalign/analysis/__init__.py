"""Similarity indexes, distances, metrics, significance."""

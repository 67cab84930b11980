"""Encoder, kernels, heads, step engine, schedules, checkpoints."""

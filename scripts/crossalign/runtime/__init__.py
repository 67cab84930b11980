"""The machine below a run: GPUs, signals, files that appear whole, clusters, and faults of others to work around."""

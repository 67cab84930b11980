"""Everything that touches the network: registers, transfers, checksums, the lock file, archives."""

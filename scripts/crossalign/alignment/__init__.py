"""Word alignment: fast_align's model, symmetrisation, and the programs that can stand in for it."""

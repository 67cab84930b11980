"""What a run tells while it goes: `handler` hears Snakemake, `story` tells it, `line` draws, `early` looks ahead."""

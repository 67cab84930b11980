"""What a run tells while it goes: `handler` hears Snakemake, `line` counts and draws."""

"""The library behind the workflow: plain Python, no Snakemake."""

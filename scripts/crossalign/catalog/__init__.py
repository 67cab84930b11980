"""What exists, and what each job reads: addresses, data sets, runs, settings. No torch, no Snakemake."""

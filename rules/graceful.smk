"""Snakemake survives SIGTERM that comes twice, as SLURM may send it. No rules."""

from crossalign.runtime.workarounds import survive_second_sigterm

survive_second_sigterm(logger.warning)

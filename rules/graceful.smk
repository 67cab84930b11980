"""Snakemake survives SIGTERM that comes twice, as SLURM may send it: its handler wants a lock that may be held by what it
interrupts, most likely by its answer to the first, and then Snakemake would hang until SLURM kills it. No rules."""

import contextlib

from crossalign.signals import beside

with contextlib.suppress(ImportError):  # other versions may keep it elsewhere
    from snakemake.scheduling.job_scheduler import JobScheduler

    JobScheduler.exit_gracefully = beside(JobScheduler.exit_gracefully)

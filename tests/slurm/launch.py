"""Snakemake that looks after its jobs every second: the executor's own pace is for clusters, not for tests.

Nothing else is changed, and what runs inside of the jobs is plain Snakemake.
"""

import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

SECONDS = 1.0

RemoteExecutor.next_seconds_between_status_checks = property(lambda _: SECONDS, lambda _, value: None)
main(sys.argv[1:])

"""Run a command beside a SLURM of its own, to try the workflow on a cluster without having one.

Starts a cluster on this machine, three virtual nodes with two pretended GPUs each, runs the command and takes the
cluster down. Its account and partition are those that profiles/slurm names, so the profile serves as it is.

Example:
    python tools/slurm_here.py snakemake --profile profiles/slurm --configfile config/demo.yaml -- anc
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from tests.slurm.cluster import Cluster, missing

from crossalign.runtime.errors import UserError, run_main


def main() -> None:
    """The status is that of the command."""
    command = sys.argv[1:]
    if command[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return
    if not command:
        raise UserError("a command was expected: python tools/slurm_here.py snakemake --profile profiles/slurm …")
    if absent := missing(accounting=True):
        raise UserError(f"not installed: {', '.join(absent)}; run sudo .ci/install-system-packages")
    with Cluster() as cluster:
        path = f"{Path(sys.executable).parent}{os.pathsep}{cluster.environment['PATH']}"
        try:
            status = subprocess.run(command, env=cluster.environment | {"PATH": path}).returncode
        except OSError as error:
            raise UserError(f"{command[0]} cannot be started: {error.strerror}") from None
    sys.exit(status)


if __name__ == "__main__":
    run_main(main)

"""tools/slurm_here.py: a command has a SLURM for as long as it runs, with the names of profiles/slurm."""

import subprocess
import sys

import pytest
import yaml
from tests.slurm.cluster import missing


def call(root, *command):
    return subprocess.run(
        [sys.executable, "tools/slurm_here.py", *command], cwd=root, capture_output=True, text=True, timeout=180
    )


def test_a_job_runs_in_the_account_and_partition_of_the_profile(root):
    if missing(accounting=True):
        pytest.skip("no SLURM: .ci/install-system-packages installs what is needed")
    profile = yaml.safe_load((root / "profiles" / "slurm" / "config.yaml").read_text(encoding="utf-8"))
    asked = profile["default-resources"]
    names = f"-A {asked['slurm_account']} -p {asked['slurm_partition']}"
    done = call(root, "sh", "-c", f"sbatch --wait --gpus=1 {names} -o /dev/null --wrap=true && exit 3")
    # The status is the command's.
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Submitted batch job" in done.stdout


def test_without_a_command_it_says_how(root):
    done = call(root)
    assert done.returncode == 1 and "a command was expected: python tools/slurm_here.py" in done.stderr

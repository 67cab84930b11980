"""Several jobs of one submission at the same time on one GPU, as profiles/packed says."""

import os
import signal

from tests.slurm.harness import Run, journal
from tests.slurm.test_slurm_faults import MINIATURE, starts, working

NAMES = ["ash", "birch", "cedar"]


def test_jobs_of_a_submission_share_its_gpu_as_far_as_it_goes(root, plain_cluster, tmp_path, monkeypatch):
    """One GPU for three jobs, two at a time; when one is killed the third comes in, and in the end all are done."""
    driver = tmp_path / "bin" / "nvidia-smi"
    driver.parent.mkdir()
    driver.write_text("#!/bin/sh\necho GPU-1\n")
    driver.chmod(0o755)
    path = f"{driver.parent}{os.pathsep}{plain_cluster.environment['PATH']}"
    monkeypatch.setitem(plain_cluster.environment, "PATH", path)
    monkeypatch.setitem(plain_cluster.environment, "CROSSALIGN_GPU_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setitem(plain_cluster.environment, "CROSSALIGN_GPU_SHARE", "2")
    profile = ("--workflow-profile", str(root / "profiles" / "packed"))
    # The rules of the profile, of which this workflow has one.
    rules = ("--groups", "work=run", "--set-resources", "work:gpu=0", "work:gres='gpu:1'")
    names = f"names={','.join(NAMES)}"
    run = Run(plain_cluster, tmp_path, "--config", names, *profile, *rules, snakefile=MINIATURE)

    run.wait(lambda: len(working(tmp_path)) == 2, "two jobs at work")
    run.wait(lambda: plain_cluster.run("squeue", "--steps", "--noheader").count("keep-ste") == 3, "three steps")
    (job,) = {line["job"] for line in journal(tmp_path)}
    assert len({line["cards"] for line in journal(tmp_path)}) == 1
    wish = plain_cluster.run("scontrol", "show", "job", job)
    assert "NumCPUs=3" in wish and "MinMemoryNode=300M" in wish and "TresPerNode=gres:gpu:1" in wish
    assert len(working(tmp_path)) == 2

    victim = next(iter(working(tmp_path).values()))
    (third,) = set(NAMES) - set(working(tmp_path))
    os.kill(victim["process"], signal.SIGKILL)
    run.wait(lambda: starts(tmp_path, third), "the third job to come in")
    assert starts(tmp_path, third)[0]["job"] == job
    (tmp_path / "go").touch()
    run.finish()
    assert {file.stem for file in tmp_path.glob("*.done")} == set(NAMES)
    assert "twice at once" not in {line["event"] for line in journal(tmp_path)}
    assert len(starts(tmp_path, victim["name"])) == 2

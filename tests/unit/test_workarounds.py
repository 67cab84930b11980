"""Workarounds are on for the pinned versions of Snakemake and its SLURM executor, and off, with a word, for others."""

import importlib.metadata
import os
import re
import threading
import time
from types import SimpleNamespace

import pytest
from snakemake.scheduling.job_scheduler import JobScheduler

from crossalign.runtime import workarounds

JOBSTEP = "snakemake-executor-plugin-slurm-jobstep"
PACKAGES = {
    "snakemake": workarounds.SNAKEMAKE,
    "snakemake-executor-plugin-slurm": workarounds.SLURM_EXECUTOR,
    JOBSTEP: workarounds.JOBSTEP_EXECUTOR,
}


@pytest.fixture
def pretend(monkeypatch):
    """Pretends that packages have other versions; None: not installed."""
    monkeypatch.setattr(workarounds, "_told", set())

    def version(package):
        if versions[package] is None:
            raise importlib.metadata.PackageNotFoundError(package)
        return versions[package]

    versions = dict(PACKAGES)
    monkeypatch.setattr(importlib.metadata, "version", version)
    return versions


@pytest.fixture
def try_all(tmp_path, monkeypatch):
    """Applies all workarounds, as rules do, to what can be put back; says which are on, and what the user was told."""
    original = JobScheduler.exit_gracefully
    monkeypatch.setattr(JobScheduler, "exit_gracefully", original)  # put back afterwards
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    def apply():
        warnings = []
        workarounds.survive_second_sigterm(warnings.append)
        scheduler = SimpleNamespace(_open_jobs=SimpleNamespace(release=lambda: None))
        workarounds.use_one_timer(scheduler, warnings.append)
        workarounds.mend_status_queries("/shims", warnings.append)
        done = {
            "sigterm": JobScheduler.exit_gracefully is not original,
            "timers": hasattr(scheduler, "_schedule_reevalutation"),
            "status": "/shims" in os.environ["PATH"].split(os.pathsep),
        }
        return {name for name, on in done.items() if on}, warnings

    return apply


def test_all_are_on_for_the_versions_they_were_written_for(pretend, try_all):
    assert try_all() == ({"sigterm", "timers", "status"}, [])


def test_another_snakemake(pretend, try_all):
    pretend["snakemake"] = "9.27.2"
    on, warnings = try_all()
    assert on == {"status"}
    assert [warning.split(": ")[0] for warning in warnings] == ["snakemake is 9.27.2, not 9.27.1"] * 2
    assert "a workaround is off, so a second SIGTERM may hang Snakemake" in warnings[0]
    assert all("\n" not in warning for warning in warnings)
    # One line each, however often rules are read.
    assert try_all() == ({"status"}, [])


@pytest.mark.parametrize(
    ("version", "told"),
    [("2.7.9", ["snakemake-executor-plugin-slurm is 2.7.9, not 2.8.0: a workaround is off"]), (None, [])],
)
def test_another_executor_or_none(pretend, try_all, version, told):
    pretend["snakemake-executor-plugin-slurm"] = version
    on, warnings = try_all()
    assert on == {"sigterm", "timers"}
    assert len(warnings) == len(told) and all(map(str.startswith, warnings, told))


class Resources(dict):
    """As Snakemake's: what is not there has no value."""

    def get(self, name):
        return SimpleNamespace(value=self.setdefault(name))


@pytest.mark.parametrize(("slots", "version", "on"), [(3, "0.6.1", True), (1, "0.6.1", False), (3, "0.7.0", False)])
def test_jobs_of_a_submission_run_side_by_side(pretend, monkeypatch, slots, version, on):
    import snakemake_executor_plugin_slurm_jobstep as jobstep

    ran = []
    monkeypatch.setattr(jobstep.Executor, "run_job", lambda *_: ran.append(threading.current_thread()))
    monkeypatch.setenv(workarounds.SLOTS, "9")
    pretend[JOBSTEP] = version
    warnings = []
    # Where Snakemake submits, it only leaves word of the limit.
    submitting = SimpleNamespace(remote_exec=False, global_resources=Resources(slot=slots))
    assert not workarounds.run_side_by_side(submitting, warnings.append) and "_nodes" not in submitting.global_resources
    assert os.environ[workarounds.SLOTS] == str(slots)
    # A job of a step runs one program as ever, and its submission as many as the limit says.
    within = SimpleNamespace(remote_exec=True, global_resources=Resources(_nodes=1))
    assert not workarounds.run_side_by_side(within, warnings.append)
    monkeypatch.setattr("sys.argv", ["snakemake", "--executor", "slurm-jobstep"])
    assert workarounds.run_side_by_side(within, warnings.append) == on
    assert within.global_resources["_nodes"] == (slots if on else 1)
    assert len(warnings) == (version != "0.6.1")
    jobstep.Executor.run_job("executor", "job")
    while not ran:
        time.sleep(0.01)
    assert (ran[0] == threading.main_thread()) != on


def test_the_name_of_a_run_is_known_or_not():
    executor = SimpleNamespace(run_uuid="crossalign_1")
    assert workarounds.submits_as(SimpleNamespace(_executor=executor)) == "crossalign_1"
    assert workarounds.submits_as(SimpleNamespace(_executor=object())) is None
    assert workarounds.submits_as(object()) is None


def test_versions_are_the_same_everywhere(root):
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (root / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE))
    assert {package: pins[package] for package in PACKAGES} == PACKAGES
    snakefile = (root / "Snakefile").read_text(encoding="utf-8")
    assert re.findall(r"^min_version\(\"(.+)\"\)", snakefile, re.MULTILINE) == [workarounds.SNAKEMAKE]


# What only Snakemake should know: its folder, its jobs and records, names that begin with an underscore, its sentences.
WITHIN = re.compile(
    r"""["']\.snakemake|\bworkflow\.(dag|persistence)\b|\b(workflow|scheduler)(\.\w+)*\._\w|"""
    r"""(from|import) snakemake\.(?!utils |exceptions )|(from|import) snakemake_executor"""
)


def test_one_file_reaches_into_snakemake(root):
    files = [
        root / "Snakefile",
        *(file for folder in ("rules", "scripts", "tools") for file in (root / folder).rglob("*")),
    ]
    texts = {
        file: file.read_text(encoding="utf-8")
        for file in files
        if file.suffix in ("", ".py", ".smk") and file.is_file()
    }
    found = {file.relative_to(root).as_posix() for file, text in texts.items() if WITHIN.search(text)}
    assert found == {"scripts/crossalign/runtime/workarounds.py"}

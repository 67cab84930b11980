"""The small run carried between two machines: what goes, what comes back, and what Snakemake wants there and here."""

import bz2
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import time

import pytest
from tests.workflow import graph_of, snakemake
from tests.workflow import planned as wanted

BASE = "results/small/models/small"
FIRST, SECOND = f"{BASE}.stage1/model.safetensors", f"{BASE}.stage2/model.safetensors"


@pytest.fixture(scope="module")
def jobs(root, tmp_path_factory):
    return graph_of(tmp_path_factory.mktemp("jobs"), root / "config/small.yaml")[1].jobs.values()


@pytest.fixture
def home(jobs, tmp_path):
    """A folder with everything that is made before pretraining, but no downloads."""
    early = ("prepare_", "align_", "train_vocabulary")
    for job in jobs:
        if job.rule.startswith(early) and "vocabularies/mono-" not in job.name:
            make(tmp_path / "home", job)
    return tmp_path / "home"


def make(folder, job):
    for file in job.outputs:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"made: {file}", encoding="utf-8")


def date(place, moment):
    for path in (place, *place.rglob("*")):
        os.utime(path, (moment, moment))


def carry(root, folder, *words, fails=False):
    folder.mkdir(exist_ok=True)
    settings = ["--configs", str(root / "config/small.yaml")] if words[0] != "receive" else []
    command = [sys.executable, str(root / "tools/carry_run.py"), words[0], *settings, *map(str, words[1:])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode != 0) == fails and "Traceback" not in done.stderr, done.stderr
    return done.stderr if fails else done.stdout


def dry_run(root, folder, *targets):
    return wanted(snakemake(root, folder, "-n", "--configfile", str(root / "config/small.yaml"), "--", *targets))


def listed(folder):
    return set((folder / "files.txt").read_text(encoding="utf-8").splitlines())


def test_there_and_back(root, jobs, home, tmp_path):
    """Each machine goes on where the other stopped, and no stage comes back that a later one has replaced."""
    there, sent, more, back = (tmp_path / name for name in ("there", "sent", "more", "back"))
    # Clocks differ: by theirs, what is sent is of the future, and by ours, what returns is of the past.
    date(home, time.time() + 3600)
    carry(root, home, "send", "--targets", FIRST, "--to", sent)
    assert all("/mix_" in file or "vocabularies/small/" in file for file in listed(sent))
    carry(root, home, "send", "--targets", SECOND, "--after", sent, "--to", more)
    assert all("/open_" in file for file in listed(more)) and listed(more)
    for folder in (sent, more):
        carry(root, there, "receive", "--from", folder)
    assert dry_run(root, there, SECOND) == {"pretrain": 2}

    for job in jobs:
        if job.rule == "pretrain" and set(job.outputs) & {FIRST, SECOND}:
            make(there, job)
    date(there / "results/small/models", 1.5e9)
    (there / "results/small/benchmarks").mkdir()
    (there / "results/small/benchmarks/stage.tsv").write_text("s\n1\n", encoding="utf-8")
    assert dry_run(root, there, SECOND) == {}
    carry(root, there, "return", "--to", back)
    assert SECOND in listed(back) and FIRST not in listed(back)
    assert f"{BASE}.stage1/training.json" in listed(back) and "results/small/benchmarks/stage.tsv" in listed(back)
    assert not any("/data/" in file for file in listed(back))

    date(home, time.time() - 60)
    carry(root, home, "receive", "--from", back)
    assert dry_run(root, home, f"{BASE}/model.safetensors") == {"pretrain": 1}
    # Nothing comes back twice.
    carry(root, there, "return", "--to", back)
    assert listed(back) == set()


def test_targets_that_are_done_are_not_made_there(root, jobs, home, tmp_path):
    """Not even if what they were made from has not gone along."""
    other = FIRST.replace("small.stage1", "small-2.stage1")
    make(home, next(job for job in jobs if FIRST in job.outputs))
    date(home, time.time())
    carry(root, home, "send", "--targets", FIRST, other, "--to", tmp_path / "sent")
    carry(root, tmp_path / "there", "receive", "--from", tmp_path / "sent")
    assert dry_run(root, tmp_path / "there", FIRST, other) == {"pretrain": 1}
    # Everything is done: only results go.
    carry(root, home, "send", "--targets", FIRST, "--to", tmp_path / "done")
    assert listed(tmp_path / "done") and all(file.startswith(f"{BASE}.stage1/") for file in listed(tmp_path / "done"))
    carry(root, tmp_path / "elsewhere", "receive", "--from", tmp_path / "done")
    assert dry_run(root, tmp_path / "elsewhere", FIRST) == {}


def test_parts_are_small_and_checked(root, jobs, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    job = next(job for job in jobs if SECOND in job.outputs)
    make(there, job)
    weights = os.urandom(3_000_000)
    (there / SECOND).write_bytes(weights)
    carry(root, there, "return", "--to", back, "--part", "1")
    parts = sorted(back.glob("part-*"))
    assert len(parts) >= 3 and all(part.stat().st_size <= 2**20 for part in parts)
    whole = parts[1].read_bytes()
    parts[1].unlink()
    assert "missing are part-002" in carry(root, tmp_path / "home", "receive", "--from", back, fails=True)
    parts[1].write_bytes(whole[:-1])
    assert "are part-002; copy" in carry(root, tmp_path / "home", "receive", "--from", back, fails=True)
    assert not list((tmp_path / "home").iterdir())
    parts[1].write_bytes(whole)
    carry(root, tmp_path / "home", "receive", "--from", back)
    assert (tmp_path / "home" / SECOND).read_bytes() == weights


@pytest.mark.parametrize("name", ["scripts/plan.py", "results/../scripts/plan.py", "/etc/passwd"])
def test_nothing_but_results_is_received(root, tmp_path, name):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    part = bz2.compress(packed.getvalue())
    (tmp_path / "part-001").write_bytes(part)
    (tmp_path / "SHA256SUMS").write_text(f"{hashlib.sha256(part).hexdigest()}  part-001\n", encoding="utf-8")
    assert "is no file of a run" in carry(root, tmp_path / "home", "receive", "--from", tmp_path, fails=True)
    assert not list((tmp_path / "home").iterdir())

"""The small run carried between two machines: what goes, what comes back, and what Snakemake wants there and here."""

import bz2
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import time
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from tests.workflow import planned as wanted
from tests.workflow import snakemake

from crossalign.catalog.config import load
from crossalign.papers.all_items import catalog_of
from crossalign.plan.costs import read_ends
from crossalign.plan.jobs import planned

BASE = "results/small/models/small"
FIRST, SECOND = f"{BASE}.stage1/model.safetensors", f"{BASE}.stage2/model.safetensors"
# The name under which Snakemake notes something of SECOND.
NOTE = "cmVzdWx0cy9zbWFsbC9tb2RlbHMvc21hbGwuc3RhZ2UyL21vZGVsLnNhZmV0ZW5zb3Jz"


@pytest.fixture(scope="module")
def jobs(root):
    return planned(catalog_of(load([root / "config.small.yaml"])), ["all"]).jobs.values()


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
    settings = ["--configs", str(root / "config.small.yaml")] if words[0] != "receive" else []
    command = [sys.executable, str(root / "tools/carry_run.py"), words[0], *settings, *map(str, words[1:])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode != 0) == fails and "Traceback" not in done.stderr, done.stderr
    return done.stderr if fails else done.stdout


def dry_run(root, folder, *targets):
    return wanted(snakemake(root, folder, "-n", "--configfile", str(root / "config.small.yaml"), "--", *targets))


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


def test_figures_that_are_done_go_with_what_they_show(root, jobs, home, tmp_path):
    figure = next(job for job in jobs if "results/small/figures/anc/figure3.svg" in job.outputs)
    shown = {file for file in figure.reads if "/similarity/" in file}
    for job in jobs:
        if job == figure or shown & set(job.outputs):
            make(home, job)
    carry(root, home, "send", "--targets", figure.outputs[0], "--to", tmp_path / "sent")
    assert listed(tmp_path / "sent") == {*figure.outputs, *shown}
    # Made again there, as its code is another, it returns.
    carry(root, tmp_path / "there", "receive", "--from", tmp_path / "sent")
    make(tmp_path / "there", figure)
    carry(root, tmp_path / "there", "return", "--to", tmp_path / "back")
    assert listed(tmp_path / "back") == set(figure.outputs)


def test_adapted_models_can_stay(root, jobs, tmp_path):
    """What was made from one returns when nobody needs it any more; else it would be made again, and all of that."""
    there, back = tmp_path / "there", tmp_path / "back"
    model = "results/small/models/small+mlm-wo/seed1"
    apart = "results/small/tuned/small/pos-en_ewt/ref/seed1/scores.json"
    readers = [job for job in jobs if f"{model}/model.safetensors" in job.reads]
    tested = [str(Path(job.outputs[0]).parents[1] / "scores.json") for job in readers if job.rule == "finetune"]
    assert len(tested) > 1

    def learn(*scores):
        for job in jobs:
            if set(job.outputs) & {*scores, *(str(Path(file).with_name("training.json")) for file in scores)}:
                make(there, job)

    make(there, next(job for job in jobs if f"{model}/model.safetensors" in job.outputs))
    learn(tested[0], apart)
    # A benchmark file at home before what its job reads would make the job run again.
    first = next(job for job in jobs if tested[0] in job.outputs)
    benchmark = there / "results/small/benchmarks" / first.benchmark
    benchmark.parent.mkdir(parents=True)
    benchmark.write_text("s\n1\n", encoding="utf-8")
    carry(root, there, "return", "--hold-models", "--to", back)
    assert apart in listed(back) and not any("+mlm-wo" in file for file in listed(back))
    learn(*tested[1:])
    for job in readers:
        make(there, job)
    # The fine-tuned models are gone after their last use, while the report has yet to read what was noted beside them.
    for file in tested:
        shutil.rmtree(there / Path(file).with_name("model"))
    carry(root, there, "return", "--hold-models", "--to", back)
    assert {*tested, f"{model}/training.json", str(benchmark.relative_to(there))} < listed(back)
    assert f"{model}/model.safetensors" not in listed(back)


def test_what_is_done_at_home_holds_no_model(root, jobs, home, tmp_path):
    """A result that is repeated returns although other uses of the model that it was made from are not known there."""
    there, sent, back = (tmp_path / name for name in ("there", "sent", "back"))
    model = "results/small/models/small+mlm-wo/seed1/model.safetensors"
    maker = next(job for job in jobs if model in job.outputs)
    readers = [job for job in jobs if model in job.reads]
    tested = next(job for job in readers if job.rule == "evaluate")
    tuned = next(job for job in readers if job.rule == "finetune" and set(job.outputs) & set(tested.reads))
    scores = next(file for file in tested.outputs if file.endswith("/scores.json"))
    for job in readers:
        if job not in (tested, tuned):
            make(home, job)
    # Large, read by no table, and so never carried here.
    for file in (home / "results/small/tuned/small+mlm-wo").glob("**/predictions.jsonl.gz"):
        file.unlink()
    # The model was deleted, but not what was noted beside it: returned anew, it would make everything else run again.
    make(home, maker)
    (home / model).unlink()
    date(home, time.time() - 60)
    carry(root, home, "send", "--targets", "talk", "--to", sent)
    carry(root, there, "receive", "--from", sent)
    for job in (maker, tuned):
        make(there, job)
    assert " more wait: " in carry(root, there, "return", "--hold-models", "--to", back)
    assert not any("+mlm-wo" in file for file in listed(back))
    make(there, tested)
    assert " more wait: " not in carry(root, there, "return", "--hold-models", "--to", back)
    assert scores in listed(back) and not any(file.startswith("results/small/models/") for file in listed(back))
    carry(root, home, "receive", "--from", back)
    others = (file for job in readers if job.rule == "evaluate" and job != tested for file in job.outputs)
    assert dry_run(root, home, *(file for file in others if file.endswith("/scores.json"))) == {}


@pytest.mark.parametrize(("settings", "returns"), [("1e-4", False), ("2e-4", True)])
def test_what_is_made_again_returns_if_by_other_settings(root, jobs, home, tmp_path, settings, returns):
    there, sent, back = (tmp_path / name for name in ("there", "sent", "back"))
    model = "results/small/models/small+mlm-wo/seed1/training.json"
    maker = next(job for job in jobs if model in job.outputs)
    note = Path(".snakemake/metadata", urlsafe_b64encode(model.encode()).decode())
    make(home, maker)
    (home / note).parent.mkdir(parents=True)
    (home / note).write_text('{"params": ["1e-4"]}', encoding="utf-8")
    carry(root, home, "send", "--targets", "anc", "--to", sent)
    carry(root, there, "receive", "--from", sent)
    make(there, maker)
    (there / note).parent.mkdir(parents=True, exist_ok=True)
    (there / note).write_text(f'{{"params": ["{settings}"]}}', encoding="utf-8")
    carry(root, there, "return", "--to", back)
    assert (model in listed(back)) == returns


def test_a_job_that_runs_is_left_out(root, jobs, tmp_path):
    make(tmp_path / "there", next(job for job in jobs if SECOND in job.outputs))
    note = tmp_path / "there/.snakemake/incomplete"
    note.mkdir(parents=True)
    (note / NOTE).touch()
    carry(root, tmp_path / "there", "return", "--to", tmp_path / "back")
    assert listed(tmp_path / "back") == set()
    (note / NOTE).unlink()
    carry(root, tmp_path / "there", "return", "--to", tmp_path / "back")
    assert SECOND in listed(tmp_path / "back")


def test_notes_of_snakemake_go_along(root, jobs, tmp_path):
    """By them another code or setting makes a carried result anew."""
    job = next(job for job in jobs if SECOND in job.outputs)
    make(tmp_path / "there", job)
    (tmp_path / "there/.snakemake/metadata").mkdir(parents=True)
    (tmp_path / "there/.snakemake/metadata" / NOTE).write_text("{}", encoding="utf-8")
    carry(root, tmp_path / "there", "return", "--to", tmp_path / "back")
    carry(root, tmp_path / "home", "receive", "--from", tmp_path / "back")
    assert (tmp_path / "home/.snakemake/metadata" / NOTE).read_text(encoding="utf-8") == "{}"


def test_it_stays_known_when_jobs_ended(root, jobs, tmp_path):
    """Also of slices on different days, whose benchmark files arrive together; but not of a job that then ran here."""
    stages = {job.name: job for job in jobs if set(job.outputs) & {FIRST, SECOND}}
    for moment, job in enumerate(stages.values()):
        there, back = (tmp_path / f"{kind}{moment}" for kind in ("there", "back"))
        file = there / "results/small/benchmarks" / job.benchmark
        file.parent.mkdir(parents=True)
        file.write_text("s\n100\n", encoding="utf-8")
        os.utime(file, (1.7e9 + moment * 1000, 1.7e9 + moment * 1000))
        carry(root, there, "return", "--to", back)
        carry(root, tmp_path / "home", "receive", "--from", back)
    folder = tmp_path / "home/results/small/benchmarks"
    files = [folder / job.benchmark for job in stages.values()]
    assert len(files) == 2 and all(abs(file.stat().st_mtime - time.time()) < 600 for file in files)
    assert read_ends(folder, stages.values()) == dict(zip(stages, (1.7e9, 1.7e9 + 1000), strict=True))
    os.utime(files[1], (1.8e9, 1.8e9))
    assert read_ends(folder, stages.values()) == dict(zip(stages, (1.7e9, 1.8e9), strict=True))


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


def test_a_folder_of_somebody_else_is_not_replaced(root, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").touch()
    told = carry(root, tmp_path / "there", "return", "--to", tmp_path / "mine", fails=True)
    assert "did not write" in told and Path(tmp_path / "mine/thesis.tex").exists()

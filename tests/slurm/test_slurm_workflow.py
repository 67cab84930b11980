"""The workflow itself on a real SLURM: from nothing to scores, over a time limit, and after the death of Snakemake."""

import contextlib
import json
import os
import shutil
import signal
import time
from threading import Thread

import pytest
from tests.slurm.harness import Run, job_of, pending, training
from tests.workflow import copy_project

# One task, two languages: few jobs, all kinds of them.
SMALL = {
    "items": ["align-predict/figure4"],
    "align-predict": {"languages": ["en", "ru"], "extra_targets": [], "sources": ["en"]}
    | {"similarity_languages": ["ru"]},
}
SIZES = {"train": 300, "dev": 10, "test": 10, "extra": 2}
RUN = "results/demo/tuned/mbert/ner-wikiann_en/ref/seed{}"


def start(cluster, folder, *arguments, seeds=(1,), targets=()):
    """Ask for the scores of some seeds, or for something else."""
    files = [str(folder / name) for name in ("config/demo.yaml", "config.small.json")]
    targets = targets or [f"{RUN.format(seed)}/scores.json" for seed in seeds]
    return Run(cluster, folder, *arguments, "--configfile", *files, "--", *targets)


@pytest.fixture(scope="module")
def made(root, cluster, tmp_path_factory):
    """A tiny demo world, and from it the scores of two seeds: everything through SLURM."""
    folder = tmp_path_factory.mktemp("project") / "a project"  # a space, as people have them
    copy_project(root, folder, wikiann={"large": SIZES, "small": SIZES})
    (folder / "config.small.json").write_text(json.dumps(SMALL), encoding="utf-8")
    start(cluster, folder, "--group-components", "run=2", "prepare=20", seeds=(1, 2)).finish(400)
    return folder


@pytest.fixture
def again(made, tmp_path):
    """The same project with its data, before the first fine-tuning."""
    folder = tmp_path / "again"
    shutil.copytree(made, folder)
    shutil.rmtree(folder / "results/demo/tuned")
    return folder


def content(folder, seed=1):
    """What training and evaluation have made, without what tells of times and interruptions."""
    run = folder / RUN.format(seed)
    report = json.loads((run / "training.json").read_text(encoding="utf-8"))
    return {
        "weights": (run / "model" / "model.safetensors").read_bytes(),
        "scores": (run / "scores.json").read_text(encoding="utf-8"),
        "loss": report["loss"],
        "dev": report["dev"],
    }


def hold(run, folder):
    """Stop a training as soon as it is ready for SIGTERM, so that however fast the machine, the fault meets it at work.

    SLURM wakes up what it wants to end, but not what it warns of the end (--signal): then it is for us to do.
    """
    run.wait(lambda: training(folder), "a training at work")
    process = training(folder)
    os.kill(process, signal.SIGSTOP)
    Thread(target=wake_when_told_to_end, args=(process,), daemon=True).start()
    return process


def wake_when_told_to_end(process):
    with contextlib.suppress(OSError):  # it has gone
        while not pending(process) & 1 << (signal.SIGTERM - 1):
            time.sleep(0.005)
        os.kill(process, signal.SIGCONT)


def resumed(folder):
    return json.loads((folder / RUN.format(1) / "training.json").read_text(encoding="utf-8"))["resumed"]


def test_from_nothing_to_scores_in_three_submissions(cluster, made):
    scores = json.loads((made / RUN.format(2) / "scores.json").read_text(encoding="utf-8"))
    assert set(scores) == {
        *("ner/conll2003_en/test", "ner/wikiann_en/dev", "ner/wikiann_en/test"),
        *("ner/wikiann_fr/test", "ner/wikiann_ru/test"),
    }
    fields = "Comment,State,ReqTRES,TimelimitRaw,WorkDir"
    answer = cluster.run("sacct", "--allocations", "--noheader", "--parsable2", f"--format={fields}")
    rows = [row.split("|")[:4] for row in answer.splitlines() if row.endswith(f"|{made}")]
    asked = {comment: (state, wish, limit) for comment, state, wish, limit in rows}
    assert len(rows) == len(asked) == 3
    assert {state for state, *_ in asked.values()} == {"COMPLETED"}
    _, wish, limit = asked["rule_run_evaluate_finetune"]
    # Two seeds one after another on one card, and time for both.
    assert "gres/gpu=1" in wish
    assert "mem=16000M" in wish
    assert limit == str(2 * (120 + 30))


def test_from_scores_to_the_page(cluster, made, tmp_path):
    """The rest of a run, on a copy that has moved: vectors, their comparison, the figure, verdicts and the page."""
    folder = tmp_path / "moved"
    shutil.copytree(made, folder)
    said = start(cluster, folder, targets=["all"]).finish(400)
    question = ("sacct", "--allocations", "--noheader", "--parsable2", "--format=Comment,WorkDir")
    submitted = cluster.run(*question).splitlines()
    rules = ["prepare_prepare_parallel", "embed_sentences", "compare_languages"]
    rules += ["gather_results", "make_figure", "make_findings", "make_verdicts", "make_report"]
    assert said.count("has been submitted") == len(rules)
    for rule in rules:
        assert any(line.startswith(f"rule_{rule}") and line.endswith(f"|{folder}") for line in submitted), rule
    results = folder / "results" / "demo"
    for name in ("figures/align-predict/figure4.svg", "figures/align-predict/figure4.csv", "verdicts.csv"):
        assert (results / name).stat().st_size > 0
    assert "figure4" in (results / "report" / "index.html").read_text(encoding="utf-8")


def test_over_its_time_limit_training_goes_on_from_its_checkpoint(cluster, made, again):
    run = start(cluster, again)
    job = job_of(hold(run, again))
    # However slow the machine, training is at work by now: the limit is set to the next full minute.
    *_, minutes, _ = cluster.run("squeue", "--noheader", "--format=%M", f"--job={job}").split(":")
    cluster.run("scontrol", "update", f"jobid={job}", f"timelimit={int(minutes) + 1}")
    run.finish(300)
    assert job not in cluster.jobs()
    assert resumed(again) == 1
    assert content(again) == content(made)

"""What a run has taken, stage by stage, from benchmark files."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.config import load
from crossalign.catalog.inputs import Job
from crossalign.papers.all_items import catalog_of
from crossalign.plan.jobs import Graph, planned
from crossalign.plan.measured import Ran, clock, measure, remarks
from crossalign.plan.show import taken
from crossalign.report.gather import gather
from crossalign.report.page import page

BEGIN = 1_700_000_000
H200 = "NVIDIA H200"
BASE = Base("small")
TUNED = Tuned("small", "pos", "en_ewt", "ref", 1)


def job(rule, output, *reads, subject=TUNED, gpus=1):
    return Job(rule, (output,), {"files": list(reads)}, subject, gpus=gpus, benchmark=f"{rule}/a.tsv")


JOBS = Graph(
    [
        job("pretrain", "model", subject=BASE),
        job("finetune", "tuned", "model"),
        job("evaluate", "scores", "tuned"),
        job("embed_sentences", "vectors", "tuned"),
        job("compare_languages", "similarity", "vectors", gpus=0),
        Job("make_table", ("table",), {"results": ["scores"]}),
    ]
)
# start and end of each, in seconds: evaluation and vectors share the card for ten of them
TIMES = {"model": (0, 100), "tuned": (100, 160), "scores": (160, 180), "vectors": (170, 200), "similarity": (200, 230)}


def write(results, graph, times, device=H200, **training):
    for name, (start, end) in times.items():
        file = results / "benchmarks" / graph.jobs[name].benchmark
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"s\th:m:s\tmax_rss\n{end - start}\t0:00:01\t1.0\n")
        os.utime(file, (BEGIN + end, BEGIN + end))
    for run in (BASE, TUNED):
        note = results / run.path() / "training.json"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"seconds": 50, "device": device, "resumed": 0} | training))


def clocks(found):
    return {stage: None if spent.clock is None else round(spent.clock, 3) for stage, spent in found.stages.items()}


def test_seconds_are_divided_among_the_jobs_that_share_them(tmp_path):
    write(tmp_path, JOBS, TIMES)
    found = measure(JOBS, tmp_path)
    assert {stage: spent.seconds for stage, spent in found.stages.items()} == {
        "pretraining": 100,
        "fine-tuning": 60,
        "evaluation": 20,
        "vectors": 30,
        "comparison": 30,
    }
    # Comparison needs no card.
    assert clocks(found) == {
        "pretraining": 100, "fine-tuning": 60, "evaluation": 15, "vectors": 25, "comparison": None,
    }  # fmt: skip
    assert (found.devices, found.unit) == ([H200], "card")
    assert (found.begun, found.ended) == (BEGIN, BEGIN + 230)
    total = found.total()
    assert (total.jobs, total.seconds, total.clock) == (5, 240, pytest.approx(200))
    assert clocks(measure(JOBS, tmp_path, cards=2))["vectors"] == 30


def test_without_a_gpu_all_jobs_share_the_machine(tmp_path):
    write(tmp_path, JOBS, TIMES, device="cpu")
    found = measure(JOBS, tmp_path)
    assert clocks(found)["comparison"] == 30
    assert found.unit == "machine"
    assert "device: CPU" in next(taken("demo", found))


def test_times_that_a_copy_has_lost_are_not_used(tmp_path):
    write(tmp_path, JOBS, TIMES)
    for file in (tmp_path / "benchmarks").rglob("*.tsv"):
        os.utime(file, (BEGIN, BEGIN))
    found = measure(JOBS, tmp_path)
    assert set(clocks(found).values()) == {None}
    assert found.total().seconds == 240
    assert found.begun is None
    told = "\n".join(taken("small", found))
    assert "tar keeps these" in told
    assert "From the first start" not in told


def test_earlier_attempts_of_a_training_count(tmp_path):
    write(tmp_path, JOBS, TIMES, seconds=130, resumed=2)
    found = measure(JOBS, tmp_path)
    # Its last attempt took 100 s of which all may be training: at least 30 s lie before it; of the other 130 less 60.
    assert found.stages["pretraining"].seconds == 130
    assert clocks(found)["fine-tuning"] == 130
    assert found.resumed == 2
    assert "2 trainings went on from a checkpoint" in " ".join(remarks(found))
    write(tmp_path, JOBS, TIMES, seconds=130)
    assert measure(JOBS, tmp_path).stages["pretraining"].seconds == 100


def test_jobs_without_a_file_and_broken_files_say_nothing(tmp_path):
    assert measure(JOBS, tmp_path).stages == {}
    assert "nothing is measured" in "".join(taken("small", measure(JOBS, tmp_path)))
    write(tmp_path, JOBS, TIMES)
    (tmp_path / "benchmarks" / "evaluate" / "a.tsv").write_text("s\n")
    assert "evaluation" not in measure(JOBS, tmp_path).stages


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50), st.integers(0, 200)), max_size=20))
def test_the_clock_shows_each_second_once(jobs):
    ran = [Ran(stage, seconds, end, True) for stage, seconds, end in jobs]
    covered = {second for _, seconds, end in jobs for second in range(end - seconds, end)}
    assert sum(clock(ran).values()) == pytest.approx(len(covered))
    # With a card for each job nothing is shared.
    assert sum(clock(ran, cards=20).values()) == pytest.approx(sum(seconds for _, seconds, _ in jobs))


@pytest.fixture
def demo(root, tmp_path):
    """A folder with benchmark files of the demo's first table, one job after another."""
    catalog = catalog_of(load([root / "config.demo.yaml"]))
    graph = planned(catalog, ["align-predict/table1"])
    names = [name for name, job in graph.jobs.items() if job.rule.startswith("finetune")]
    names += [name for name, job in graph.jobs.items() if job.rule == "evaluate"]
    write(tmp_path / "results" / "demo", graph, {name: (6 * at, 6 * at + 6) for at, name in enumerate(names)})
    return catalog, tmp_path, len(names)


def test_the_program_prints_stages(root, demo):
    _, folder, many = demo
    command = [sys.executable, str(root / "scripts" / "plan.py"), str(root / "config.demo.yaml"), "--measured"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stage        jobs  job-minutes" in done.stdout
    assert done.stdout.split("\nall ")[1].split()[:2] == [str(many), f"{many / 10:.1f}"]
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_the_page_shows_the_same(demo):
    catalog, folder, many = demo
    results = folder / "results" / "demo"
    content = page(gather(catalog.config, results, results / "report" / "index.html"))
    assert f"<dt>Time</dt><dd>{many / 10:.1f} min of the machine ({many / 10:.1f} min of {many} jobs)" in content
    assert f'<th scope="row">fine-tuning</th><td>{many // 2}</td>' in content

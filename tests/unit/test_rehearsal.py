"""The rehearsal: where trainings are cut, what is extrapolated from them, and what plan and page make of it."""

import json
import os
import time

import pytest
from tests.workflow import graph_of

from crossalign.catalog.config import load
from crossalign.catalog.studied import known_models
from crossalign.engine.checkpoints import Checkpoints, Saving
from crossalign.fetch.register import read_datasets
from crossalign.plan.dag import write_real_run
from crossalign.plan.estimate import Choice, Estimate
from crossalign.plan.outlook import hardware_of, outlook, tells_of
from crossalign.plan.rehearsal import alone, cut_seconds, note_disk, rehearsed
from crossalign.plan.show import rehearsal_table, rehearsal_words

ITEMS = ["align-predict/table4", "anc/table1"]


def made(rehearse):
    return Checkpoints(None, "x", Saving(rehearse=rehearse))


@pytest.mark.parametrize(
    ("rehearse", "total", "steps"),
    [(None, 100, range(100)), (3, 100, range(3)), (3, 7, range(3)), (3, 6, range(6)), (3, 2, range(2))],
)
def test_a_training_is_cut_unless_it_would_be_over_by_then(rehearse, total, steps):
    one = made(rehearse)
    assert one.steps(total) == steps
    assert one.cut == (len(steps) < total)


def test_steps_and_scores_are_measured_when_they_have_run_before():
    one = made(4)
    one.steps(1000)
    one.progress.step = 4
    done = []
    one.rehearse(1000, lambda number: (done.append(number), time.sleep(0.01)), lambda: time.sleep(0.05), 15)
    note = one.progress.rehearsal
    assert done == [0, 1, 2, 3]
    assert (note["planned_steps"], note["steps_left"], note["scores_left"]) == (1000, 992, 14)
    assert 0.01 <= note["step_seconds"] < 0.1 and 0.05 <= note["score_seconds"] < 0.5
    assert cut_seconds({"rehearsal": note}) == pytest.approx(992 * note["step_seconds"] + 14 * note["score_seconds"])
    assert cut_seconds({"seconds": 12.0}) == 0


@pytest.fixture(scope="module")
def estimate(tmp_path_factory, root):
    """The real run as a rehearsal foresees it."""
    catalog, graph = graph_of(tmp_path_factory.mktemp("real"), changes={"items": ITEMS})
    registers = read_datasets(root / "resources" / "datasets.tsv"), known_models(catalog.config)

    def made(folder, **choice):
        return Estimate(catalog, graph, registers, Choice(rehearsal=folder, **choice), root, root / "nowhere")

    return made


@pytest.fixture(scope="module")
def real_run(tmp_path_factory, root):
    """What the program that plans a rehearsal leaves for the page."""
    folder = tmp_path_factory.mktemp("rehearsal")
    write_real_run(load([root / "config/rehearsal.yaml"]) | {"items": ITEMS}, folder)
    return (folder / "plan" / "real_run.json").read_text()


@pytest.fixture
def results(tmp_path, estimate, real_run):
    """Of a rehearsal in which one NER model of seed 1 was trained for 20 s, of which 5,820 steps were cut."""
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "real_run.json").write_text(real_run)
    jobs = estimate(None).jobs.values()
    job = next(job for job in jobs if job.rule == "finetune" and job.subject.task == "ner" and job.subject.seed == 1)
    benchmark = tmp_path / "benchmarks" / job.benchmark
    benchmark.parent.mkdir(parents=True)
    benchmark.write_text("s\tmax_rss\n20\t4000\n")
    note = {"device": "NVIDIA H200", "gpu_memory": 9000, "rehearsal": {"steps_left": 5820, "step_seconds": 0.01}}
    (tmp_path / job.subject.path()).mkdir(parents=True)
    (tmp_path / job.subject.path() / "training.json").write_text(json.dumps(note))
    return tmp_path


def test_the_plan_uses_what_was_rehearsed(results, estimate):
    before, after = estimate(None), estimate(results)
    jobs = [job for job in after.jobs.values() if job.rule == "finetune"]
    alike = [job for job in jobs if job.subject.task == "ner"]
    assert len(alike) == 5
    for job in alike:
        price = after.price(job.name)
        assert (price.seconds, price.basis, price.idle) == (pytest.approx(78.2), "rehearsal", pytest.approx(20))
    # Others of the rule: the table, corrected by what it got wrong of these.
    ratio = 78.2 / before.price(alike[0].name).seconds
    other = next(job.name for job in jobs if job.subject.task == "nli")
    assert after.price(other).seconds == pytest.approx(ratio * before.price(other).seconds)
    scored = next(name for name, job in after.jobs.items() if job.rule == "evaluate")
    assert after.price(scored) == before.price(scored)
    # What leaves the GPU to others takes less time beside them.
    assert price.shared(1) == pytest.approx(78.2) and price.shared(4) < 20 / 4 + 58.2


def test_outlook_by_rule(results, root):
    config = load([root / "config/rehearsal.yaml"]) | {"items": ITEMS}
    assert outlook(config, results / "nothing", ["NVIDIA H200"]) is None
    note_disk(results, results / "disk.json")
    found = outlook(config, results, ["NVIDIA H200"])
    (line,) = found.lines
    told = (line.rule, line.rehearsed, line.measured, line.took, line.host, line.gpu)
    assert told == ("finetune", 1, 1, 20, 4000, 9000)
    assert line.foreseen > 5 * 78 and line.foreseen != line.planned
    assert found.seconds[0] - found.seconds[1] == pytest.approx(line.foreseen - line.planned)
    assert rehearsal_table(found)[1][-2:] == ["4 GB", "9 GB"]
    told = list(rehearsal_words(found))
    assert "of one H200, one job at a time" in " ".join(told) and "The disk held 0 B more" in " ".join(told)


def test_a_job_is_alone_if_others_hardly_ran_beside_it():
    spans = {"long": (0, 100), "in its last seconds": (92, 120), "short": (120.5, 121), "late": (120.9, 130)}
    assert alone(spans) == {"long", "short", "late"}
    assert alone(spans | {"second": (50, 60)}) == {"short", "late"}
    assert alone({}) == set()


def beside(results, estimate, task, start, seconds):
    """Another fine-tuning of the rehearsal, on the same GPU at that time."""
    jobs = estimate(None).jobs.values()
    alike = [job for job in jobs if job.rule == "finetune" and job.subject.task == task]
    job = max(alike, key=lambda job: job.subject.seed)
    file = results / "benchmarks" / job.benchmark
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"s\tmax_rss\n{seconds}\t5000\n")
    os.utime(file, (start + seconds, start + seconds))
    return job.name


def test_jobs_that_shared_the_gpu_are_not_counted(results, root, estimate):
    (first,) = rehearsed(results, list(estimate(None).jobs.values()))
    begun = next((results / "benchmarks").rglob("*.tsv")).stat().st_mtime + 100
    before = estimate(results).price(first)
    others = beside(results, estimate, "ner", begun, 300), beside(results, estimate, "nli", begun + 5, 400)
    assert {name: each.alone for name, each in rehearsed(results, list(estimate(None).jobs.values())).items()} == {
        first: True, others[0]: False, others[1]: False
    }  # fmt: skip
    assert estimate(results).price(first) == before
    (line,) = outlook(load([root / "config/rehearsal.yaml"]) | {"items": ITEMS}, results, ["NVIDIA H200"]).lines
    assert (line.rehearsed, line.measured, line.took, line.host) == (3, 1, 20, 5000)


def test_where_none_was_alone_all_are_counted(results, estimate):
    begun = next((results / "benchmarks").rglob("*.tsv")).stat().st_mtime - 15
    other = beside(results, estimate, "nli", begun, 40)
    assert estimate(results).price(other).seconds == 40
    assert not any(each.alone for each in rehearsed(results, list(estimate(None).jobs.values())).values())


def test_one_job_of_each_kind_is_asked_for_by_a_result_that_stays(estimate):
    one = estimate(None)
    chosen = one.one_of_each_kind()
    assert len(set(chosen)) == len(chosen) and set(chosen) <= one.jobs.keys()
    rules = [one.jobs[name].rule for name in chosen]
    assert not {"embed_sentences", "embed_words"} & set(rules)
    assert not [name for name in chosen if "/random-" in name and "/model/" in name]
    behind, waiting = set(), list(chosen)
    while waiting:
        name = waiting.pop()
        behind.add(name)
        waiting += one.graph.needs[name]

    def kinds(names):
        jobs = [one.jobs[name] for name in names]
        return {(job.rule, one.works.of(job).group) for job in jobs if job.gpus and job.rule != "evaluate"}

    assert kinds(behind) == kinds(one.jobs)
    on_gpu = [name for name in one.jobs if one.jobs[name].gpus]
    assert len(chosen) < len(on_gpu) / 4
    # Seeds differ in nothing that takes time, so the first stands for all.
    assert all(one.jobs[name].subject.seed == 1 for name in chosen if hasattr(one.jobs[name].subject, "seed"))


def test_only_a_rehearsal_of_full_size_on_such_hardware_counts_by_itself(results):
    known = {"cpu": "cpu", "NVIDIA H200": "h200", "Tesla V100-SXM2-32GB": "v100", "NVIDIA A100": "h200"}
    assert {device: hardware_of([device]) for device in known} == known
    assert tells_of(results, "h200")
    assert not tells_of(results, "cpu") and not tells_of(results / "nothing", "h200")
    (results / "mirror").mkdir()
    (results / "mirror" / "settings.json").write_text('{"tiny": true}')
    assert not tells_of(results, "h200")

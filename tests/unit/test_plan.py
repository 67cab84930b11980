"""The plan: jobs, what is left of them and the wall time; prices of jobs; what jobs took."""

import csv
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crossalign.catalog.addresses import Adapted, Base, Mlm, Tuned
from crossalign.catalog.config import load
from crossalign.catalog.inputs import Inputs, Job
from crossalign.catalog.sets import DataSet
from crossalign.fetch.register import Model, read_datasets, read_models
from crossalign.papers.all_items import catalog_of
from crossalign.plan.costs import COLUMNS, HARDWARE, SHARING, Price, Prices, Row, read_benchmarks, read_costs
from crossalign.plan.estimate import Choice, Estimate
from crossalign.plan.jobs import Graph, Machines, planned
from crossalign.plan.measured import parts_of_gpus
from crossalign.plan.show import columns, duration
from crossalign.plan.work import Sizes, Work, kept, model_disk, readable, tuned_bytes
from crossalign.report.gather import gather
from crossalign.report.page import page
from crossalign.runtime.errors import UserError
from crossalign.runtime.gpus import WAITED


def graph(*jobs, targets=()):
    """Jobs as (name, what it reads, settings), each with one output of its name."""
    made = [Job(rule, (name,), {"files": list(reads)}, **settings) for rule, name, reads, settings in jobs]
    return Graph(made, targets)


CHAIN = graph(
    ("download", "file", (), {}),
    ("train", "model", ["file"], {}),
    ("score", "scores", ["model"], {}),
    ("table", "table", ["scores"], {}),
    targets=["table"],
)


@pytest.mark.parametrize(
    ("there", "left"),
    [
        ((), {"file", "model", "scores", "table"}),
        # Files that nothing reads any more are not missed.
        (("table",), set()),
        (("scores",), {"table"}),
        # A missing target wants what it reads.
        (("file",), {"model", "scores", "table"}),
        (("file", "model"), {"scores", "table"}),
    ],
)
def test_what_is_left(there, left):
    assert CHAIN.remaining(there.__contains__) == left


def test_what_depends_on_a_new_result_is_made_again():
    jobs = graph(
        ("a", "file", (), {}), ("b", "left", ["file"], {}), ("b", "right", ["file"], {}), targets=["left", "right"]
    )
    assert jobs.remaining(("right",).__contains__) == {"file", "left", "right"}


def test_one_of_several_outputs_is_missed_only_where_it_is_read():
    jobs = Graph([Job("train", ("model", "account")), Job("search", ("best",), {"files": ["account"]})], ["best"])
    assert jobs.remaining(("account",).__contains__) == {"best"}
    assert jobs.remaining(("model",).__contains__) == {"model", "best"}


def test_a_table_that_the_config_asks_more_of_is_made_again():
    """As with one seed more. A config is no result, and predictions need not come home with their scores."""
    jobs = Graph(
        [
            Job("write_config", ("config",)),
            Job("evaluate", ("first", "predictions")),
            Job("evaluate", ("second",)),
            Job("make_table", ("table",), {"files": ["first", "predictions", "second", "config"]}),
            Job("make_report", ("page",), {"files": ["table"]}),
        ],
        ["table", "page"],
    )
    there = {"first", "second", "table", "page"}
    assert jobs.remaining(there.__contains__) == set()
    more = {jobs.maker[file] for file in ("predictions", "second", "config", "table", "page")}
    assert jobs.remaining((there - {"second"}).__contains__) == more


def test_targets_are_rules_items_or_files():
    inputs = Inputs(catalog_of(load([])))
    assert inputs.items_of("anc/figure4") == ["anc/figure4"]
    assert inputs.items_of("results/paper/tables/adjust/table2.csv") == ["adjust/table2"]
    assert len(inputs.items_of("talk")) == 10
    assert inputs.items_of("grid") == ["align-predict/table3"]
    assert Inputs(catalog_of(load([]) | {"skip": {"align-predict/table3": "too long"}})).items_of("grid") == []
    wrong = ("everything", "anc/figure99", "results/demo/tables/adjust/table2.csv", "anc/")
    for target in (*wrong, "results/paper/models/mbert/model.safetensors", "results/paper/models/mono-wo/absent"):
        with pytest.raises(UserError, match=f"unknown target '{target}'.*align_predict"):
            inputs.target(target)


def test_pretraining_is_a_target_whole_and_model_by_model(root):
    catalog = catalog_of(load([root / "config.small.yaml"]))
    whole, first = planned(catalog, ["pretrained"]), "results/small/models/small-2.stage2/model.safetensors"
    trained = {name for name, job in whole.jobs.items() if job.rule == "pretrain"}
    assert trained == {name for name, job in planned(catalog).jobs.items() if job.rule == "pretrain"}
    assert not any(".stage" in target for target in whole.targets)
    part = planned(catalog, [first])
    assert {str(job.subject.name) for job in part.jobs.values() if job.rule == "pretrain"} == {
        "small-2.stage1", "small-2.stage2"
    }  # fmt: skip
    assert Inputs(catalog).items_of(first) == []


DIAMOND = graph(
    ("a", "a", (), {}), ("b", "b", "a", {"gpus": 1}), ("c", "c", "a", {"gpus": 1}), ("d", "d", "bc", {})
)  # fmt: skip
SECONDS = {"a": 1, "b": 5, "c": 2, "d": 1}.__getitem__


def test_the_longest_chain_of_what_is_left():
    assert DIAMOND.critical_path("abcd", SECONDS) == ["a", "b", "d"]
    assert DIAMOND.tails("abcd", SECONDS) == {"a": 7, "b": 6, "c": 3, "d": 1}
    assert DIAMOND.critical_path("cd", SECONDS) == ["c", "d"]
    assert DIAMOND.critical_path("", SECONDS) == []


@pytest.mark.parametrize(
    ("names", "machines", "wall"),
    [
        ("cd", Machines(1, 4), 3),
        ("", Machines(1, 4), 0),
        ("abcd", Machines(2, 4), 7),
        ("abcd", Machines(1, 4), 9),
        # A GPU job needs a core too, and without GPUs a core alone.
        ("abcd", Machines(2, 1), 9),
        ("abcd", Machines(0, 2), 7),
    ],
)
def test_gpus_and_cores_bound_what_runs_together(names, machines, wall):
    assert DIAMOND.wall_time(names, SECONDS, machines) == wall


def test_transfers_share_one_line_and_threads_shrink_to_what_there_is():
    jobs = graph(("download_file", "a", (), {}), ("download_model", "b", (), {}), ("x", "c", (), {"threads": 8}))
    assert [jobs.wall_time("abc", lambda name: 1, Machines(1, cores)) for cores in (2, 10)] == [3, 2]


def test_durations_and_columns():
    shown = [duration(seconds) for seconds in (0.35, 61, 120, 7200, 864000)]
    assert shown == ["0.35 s", "61 s", "2 min", "2 h", "10.0 days"]
    assert list(columns([["a", 1], ["bcd", 100]])) == ["a      1", "bcd  100"]


STEP = Row(10, 1, 4, 32, 12, 768, 0, "measured")


@pytest.fixture(scope="module")
def registers(root):
    return read_datasets(root / "resources" / "datasets.tsv"), read_models(root / "resources" / "models.tsv")


def estimate(root, registers, folder, files, **choice):
    catalog = catalog_of(load([root / name for name in files]))
    return Estimate(catalog, registers, Choice(**choice), root, folder)


def seconds_of(row, batch, shape, gpu=True, pieces=0):
    return row.price(Work("finetune", "nli", 1000, batch, shape, pieces=pieces), gpu).seconds


def test_time_grows_with_steps_batch_and_model():
    assert seconds_of(STEP, 32, (12, 768)) == pytest.approx(10 + 1 + 4)
    # The processor's time grows with the entries, half of the card's with the batch.
    assert seconds_of(STEP, 64, (12, 768)) == pytest.approx(10 + 2 + 6)
    assert seconds_of(STEP, 32, (24, 1024)) == pytest.approx(10 + 1 + 4 * 2 * (4 / 3) ** 2)


def test_a_narrow_model_saves_less_on_a_gpu_than_its_products_do():
    assert seconds_of(STEP, 32, (12, 384)) == pytest.approx(11 + 4 * 5 / 8)
    assert seconds_of(STEP, 32, (6, 384)) == pytest.approx(11 + 4 * 5 / 16)
    assert seconds_of(STEP, 32, (12, 384), gpu=False) == pytest.approx(11 + 4 / 4)
    assert seconds_of(STEP, 8, (12, 64), gpu=False) == pytest.approx(10 + 1 / 4 + 4 / 4 / 144)


def test_a_small_vocabulary_is_cheaper():
    row = Row(0, 0, 2, 0, 12, 768, 37500, "measured")
    layers, scores = 12 * 12 * 768**2, 768 * 37500
    assert seconds_of(row, 0, (12, 768), pieces=37500) == pytest.approx(2)
    assert seconds_of(row, 0, (12, 768), pieces=4500) == pytest.approx(2 * (layers + scores * 0.12) / (layers + scores))


@pytest.mark.parametrize(("layers", "neurons", "pieces", "milliseconds"), [(12, 64, 900, 6.2), (12, 768, 37500, 30.3)])
def test_pretraining_steps_that_were_measured_come_out(root, layers, neurons, pieces, milliseconds):
    # docs/notes/performance.md, Planning: 16,384 tokens a step.
    row = read_costs(root / "resources" / "costs.tsv")["h200", "pretrain", ""]
    price = row.price(Work("pretrain", units=16.384, shape=(layers, neurons), pieces=pieces), gpu=True)
    assert 1000 * (price.seconds - price.idle) == pytest.approx(milliseconds, rel=0.2)


def test_jobs_that_share_a_card_start_side_by_side_and_train_hardly_faster():
    price = Price(30, "measured", idle=12)
    assert price.shared(1) == 30
    assert price.shared(6) == pytest.approx(12 / 6 + 18 / SHARING)
    assert 1.1 < SHARING < 1.3


def test_sharing_cards_shortens_the_small_run(root, registers, tmp_path):
    alone, shared = (
        estimate(root, registers, tmp_path, ["config.small.yaml"], share=many, cores=16) for many in (1, 6)
    )
    assert alone.totals().gpu_seconds == alone.totals().alone == pytest.approx(shared.totals().alone)
    assert alone.totals().alone / 6 < shared.totals().gpu_seconds < alone.totals().alone / SHARING
    assert alone.wall_time() / 6 < shared.wall_time() < alone.wall_time()
    # No number of machines or of jobs on them shortens the longest chain.
    many = estimate(root, registers, tmp_path, ["config.small.yaml"], share=16, cores=999, gpus=999)
    chain = sum(map(many.seconds, many.critical_path()))
    assert chain == pytest.approx(sum(map(alone.seconds, alone.critical_path())))
    # Only a few files are fetched at a time, which may take longer still.
    assert chain <= many.wall_time() < shared.wall_time()


def test_the_small_run_takes_little_more_than_two_hours_of_a_card(root, registers, tmp_path):
    plan = estimate(root, registers, tmp_path, ["config.small.yaml"], share=12, cores=16)  # as in profiles/small
    assert plan.totals().gpu_seconds <= 2.25 * 3600


def test_the_small_run_depends_on_its_models_and_sets(root, registers, tmp_path):
    plan = estimate(root, registers, tmp_path, ["config.small.yaml"])
    made = {job.subject.name: plan.price(name).seconds for name, job in plan.jobs.items() if job.rule == "pretrain"}
    assert made["small-6x256"] < made["small-8x512"] < made["small"]
    # A smaller model, but all tokens are guessed.
    assert made["small-causal-4x128"] > made["small-6x256"] / 2
    assert 100 < made["small.stage1"] < 280  # measured on this shape: 141 s
    name = "results/small/tuned/small/adjust-nli-mix_en/ref/seed1/model/model.safetensors"
    report = tmp_path / "results/small/data/nli/mix_en/train.report.json"
    report.parent.mkdir(parents=True)
    seconds = [plan.price(name).seconds]
    for size in (25001, 12501):
        report.write_text(json.dumps({"read": size, "kept": size}))
        seconds.append(estimate(root, registers, tmp_path, ["config.small.yaml"]).price(name).seconds)
    # As many as `examples` of the config says, or what is there; the start and the tests are the same.
    most = load([root / "config.small.yaml"])["finetune"]["adjust-nli"]["examples"]
    expected = (most - 25001) / (25001 - 12501)
    assert (seconds[0] - seconds[1]) / (seconds[1] - seconds[2]) == pytest.approx(expected, rel=0.01)


# What jobs take on an H200 by the rehearsals of 16 and 17 November 2026 (docs/notes/performance.md): files below
# results/paper, seconds with the steps that were cut. Costs come from the first and from the last three of the second.
TUNED_WEIGHTS = "seed1/model/model.safetensors"
REHEARSED = {
    f"tuned/mbert/parsing-en_ewt/random-all/{TUNED_WEIGHTS}": 39.0,
    f"tuned/mbert/parsing-en_ewt/grid-16-5e-5/{TUNED_WEIGHTS}": 47.7,
    f"tuned/mbert/unseen-parsing-ug_udt/ref/{TUNED_WEIGHTS}": 24.0,
    f"tuned/mbert/pos-en_ewt/ref/{TUNED_WEIGHTS}": 24.4,
    f"tuned/mbert/pos-en_ewt/grid-32-5e-5/{TUNED_WEIGHTS}": 16.0,
    f"tuned/mbert/ner-wikiann_en/random-all/{TUNED_WEIGHTS}": 42.5,
    f"tuned/mbert/ner-wikiann_ru/ref/{TUNED_WEIGHTS}": 43.8,
    f"tuned/mbert/adjust-ner-wikiann_en/ref/{TUNED_WEIGHTS}": 16.6,
    f"tuned/mbert/adjust-nli-multinli_en/ref/{TUNED_WEIGHTS}": 98.6,
    f"tuned/mbert/adjust-qa-squad_en/ref/{TUNED_WEIGHTS}": 96.9,
    f"tuned/mbert/adjust-qa-squadmt_es/ref/{TUNED_WEIGHTS}": 72.5,
    f"tuned/mbert/adjust-qa-squadmt_hi/ref/{TUNED_WEIGHTS}": 90.5,
    f"tuned/mbert+adjust-vi-30k-avg-all/adjust-ner-wikiann_en/continual/{TUNED_WEIGHTS}": 26.3,
    f"tuned/mbert+adjust-vi-30k-avg-all/adjust-nli-multinli_en/continual/{TUNED_WEIGHTS}": 137.4,
    f"tuned/mbert+adjust-vi-30k-avg-all/adjust-qa-squad_en/continual/{TUNED_WEIGHTS}": 101.0,
    "tuned/mbert/pos-en_ewt/ref/seed1/scores.json": 0.47,
    "tuned/mbert/adjust-qa-squad_en/ref/seed1/scores.json": 0.5,
    f"tuned/bilstm/unseen-parsing-ug_udt/ref/{TUNED_WEIGHTS}": 165.4,
    "models/mbert+mlm-gsw/seed1/model.safetensors": 303.1,
    "models/mono-gsw/model.safetensors": 156.0,
    "models/mbert+adjust-vi-30k-avg-all/seed1/model.safetensors": 23.3,
    "data/text/wikipedia_ckb/train.txt": 12.4,
    "data/text/wikipedia_bm/train.txt": 0.44,
    "data/bitext/wikimatrix_vi/pool.tsv": 29.8,
    f"tuned/mbert/parsing-en_ewt/grid-32-1e-5/{TUNED_WEIGHTS}": 35.8,
    f"tuned/mbert/pos-ar_padt/random-1-2/{TUNED_WEIGHTS}": 18.3,
    f"tuned/mbert/parsing-en_partut/ref/{TUNED_WEIGHTS}": 14.8,
    f"tuned/mbert/ner-wikiann_ar/ref/{TUNED_WEIGHTS}": 39.9,
    f"tuned/embert-hi+adjust-hi-100k-avg-all/adjust-nli-multinli_en/ref/{TUNED_WEIGHTS}": 99.6,
    f"tuned/mbert+mlm-ug/unseen-parsing-ug_udt/ref/{TUNED_WEIGHTS}": 28.7,
    f"tuned/bilstm/unseen-parsing-wo_wtb/ref/{TUNED_WEIGHTS}": 163.6,
    "models/mbert+adjust-ru-250k-avg-all/seed1/model.safetensors": 82.2,
    "models/mbert+mlm-ug/seed1/model.safetensors": 154.6,
    "models/mono-wo/model.safetensors": 16.5,
    "embeddings/models/xlmr-large/xnliext": 14.1,
    "links/wikimatrix_hi/pool.pieces.pharaoh": 53.8,
    "similarity/models/mbert/pud.csv": 6.7,
    "similarity/models/xglm-2.9b/xnliext.csv": 14.6,
}


@pytest.fixture(scope="module")
def papers(root, registers, tmp_path_factory):
    return estimate(root, registers, tmp_path_factory.mktemp("nothing"), [])


@pytest.mark.parametrize("file", REHEARSED)
def test_the_papers_on_an_h200_cost_what_the_rehearsal_took(papers, file):
    price = papers.price(papers.graph.maker[f"results/paper/{file}"])
    assert REHEARSED[file] / 1.5 < price.seconds < REHEARSED[file] * 1.5
    assert price.basis == "measured"


def test_an_evaluation_whose_model_was_trained_before_is_no_longer_free(root, registers, tmp_path):
    choice = {"targets": ["align-predict/table1"]}
    scores = "results/paper/tuned/mbert/parsing-en_ewt/ref/seed1/scores.json"
    first = estimate(root, registers, tmp_path, [], **choice)
    scored = first.graph.maker[scores]
    tuned = next(job for job in map(first.jobs.get, first.graph.needs[scored]) if job.rule == "finetune")
    queue = list(first.graph.needs[scored])
    while queue:
        name = queue.pop()
        queue += first.graph.needs[name]
        for output in first.jobs[name].outputs:
            (tmp_path / output).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / output).touch()
    again = estimate(root, registers, tmp_path, [], **choice)
    assert tuned.name not in again.left
    # The start of a process, and the predictions that cost the fine-tuning about 4 s.
    assert again.price(scored).seconds > first.price(scored).seconds + 8
    (tmp_path / "results/paper/ahead" / tuned.subject.path()).mkdir(parents=True)
    assert estimate(root, registers, tmp_path, [], **choice).price(scored) == first.price(scored)


def test_texts_of_different_sizes_are_not_taken_for_alike(root, registers, papers, tmp_path):
    small, large = (f"results/paper/data/text/wikipedia_{code}/train.txt" for code in ("bm", "ckb"))
    write_benchmark(tmp_path, papers.jobs[large], 2 * papers.price(large).seconds)
    after = estimate(root, registers, tmp_path, [], benchmarks=tmp_path)
    assert after.price(small).seconds == pytest.approx(2 * papers.price(small).seconds)


def test_the_papers_hours_come_out(root, registers, tmp_path):
    # 32, 75 and 24 minutes on English, less on the smaller sets of the others.
    plan = estimate(root, registers, tmp_path, [], targets=["align-predict/table1"], hardware="t4")
    trained = [name for name, job in plan.jobs.items() if job.rule.startswith("finetune")]
    english = {plan.jobs[name].subject.task: plan.price(name).seconds / 60 for name in trained if "en_ewt" in name}
    assert english["parsing"] == pytest.approx(32, rel=0.01)
    name = (
        "results/paper/tuned/mbert+adjust-hi-30k-avg-all/adjust-nli-multinli_en/continual/seed1/model/model.safetensors"
    )
    plan = estimate(root, registers, tmp_path, [], targets=["adjust"], hardware="v100")
    assert plan.price(name).seconds / 60 == pytest.approx(240, rel=0.01)
    assert plan.price(name).basis == "paper"


@pytest.mark.parametrize("files", [[], ["config.demo.yaml"], ["config.small.yaml"]])
@pytest.mark.parametrize("hardware", HARDWARE)
def test_every_job_has_a_price_on_all_hardware(root, registers, tmp_path, hardware, files):
    plan = estimate(root, registers, tmp_path, files, hardware=hardware)
    assert min(plan.seconds(name) for name in plan.jobs) > 0
    totals = plan.totals()
    assert (totals.gpu_seconds == 0) == (hardware == "cpu")
    assert totals.cpu_seconds > 0


def costs_file(tmp_path, **changes):
    row = {"hardware": "h200", "rule": "r", "task": "", "seconds": "1", "host": "", "milliseconds": "2", "unit": "step"}
    row |= {"batch": "", "layers": "", "neurons": "", "pieces": "", "basis": "measured", "source": "here"} | changes
    file = tmp_path / "costs.tsv"
    file.write_text("\t".join(COLUMNS) + "\n" + "\t".join(row[name] for name in COLUMNS) + "\n")
    return file


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hardware": "abacus"}, "hardware 'abacus' is not one of h200"),
        ({"basis": "hope"}, "basis 'hope' is not one of measured"),
        ({"source": ""}, "source is empty"),
        ({"seconds": "soon"}, "'soon'"),
    ],
)
def test_mistakes_in_the_table_are_told_with_their_line(tmp_path, changes, message):
    with pytest.raises(UserError, match=f"costs.tsv, line 2: .*{message}"):
        read_costs(costs_file(tmp_path, **changes))


def test_a_missing_row_is_told(tmp_path):
    table = read_costs(costs_file(tmp_path))
    with pytest.raises(UserError, match="no row for the rule finetune for pos on h200"):
        Prices(table, "h200", {"a": Work("finetune", "pos")}).of("a")


def test_sizes_come_from_reports_then_from_what_is_published(root, tmp_path):
    sizes = Sizes(load([]), tmp_path, root / "resources" / "sizes.tsv", root)
    assert sizes.of(DataSet("trees", "en_ewt", "train")) == 12543
    assert sizes.of(DataSet("trees", "gsw_uzh+fold1", "train")) == 60
    assert sizes.of(DataSet("ner", "wikiann_ug+latn", "train")) == 100
    assert sizes.of(DataSet("bitext", "wikimatrix_ru", "pool")) == 250000
    fewer = Sizes(load([]) | {"ner_sentences": 2000}, tmp_path, root / "resources" / "sizes.tsv", root)
    sets = [DataSet("ner", name, split) for name in ("wikiann_de", "wikiann_hi") for split in ("train", "test")]
    assert [fewer.of(data) for data in sets] == [20000, 2000, 5000, 1000]
    report = tmp_path / "data" / "trees" / "en_ewt" / "train.report.json"
    report.parent.mkdir(parents=True)
    report.write_text('{"read": 8, "kept": 7}')
    assert (
        Sizes(load([]), tmp_path, root / "resources" / "sizes.tsv", root).of(DataSet("trees", "en_ewt", "train")) == 7
    )


def test_sizes_of_the_demo_are_those_of_its_world(root, tmp_path):
    sizes = Sizes(load([root / "config.demo.yaml"]), tmp_path, root / "resources" / "sizes.tsv", root)
    sets = {"trees/en_ewt/train": 2400, "ner/wikiann_ug/test": 100, "nli/xnli_fr/dev": 500, "qa/mlqa_es_en/test": 100}
    sets |= {
        "qa/squadmt_es/train": 400,
        "parallel/xnliext/fr": 600,
        "parallel/pud/en": 100,
        "text/wikipedia_wo/train": 1200,
    }
    assert {name: sizes.of(DataSet(*name.split("/"))) for name in sets} == sets


def write_benchmark(folder, job, seconds):
    file = folder / job.benchmark
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:01\t1.0\n")


def test_benchmark_files_count_more_than_the_table(root, registers, tmp_path):
    choice = {"targets": ["align-predict/table1"], "benchmarks": tmp_path / "times"}
    before = estimate(root, registers, tmp_path, ["config.demo.yaml"], hardware="cpu", **choice)
    parsers = [job for job in before.jobs.values() if job.rule == "finetune" and job.subject.task == "parsing"]
    english = next(job for job in parsers if job.subject.source == "en_ewt")
    other = next(job for job in parsers if job.subject.source == "ru_gsd")
    write_benchmark(tmp_path / "times", english, 3 * before.price(english.name).seconds)
    (tmp_path / "times" / other.benchmark).parent.mkdir(parents=True)
    (tmp_path / "times" / other.benchmark).write_text("s\n")  # A job that was killed while it wrote.
    after = estimate(root, registers, tmp_path, ["config.demo.yaml"], hardware="cpu", **choice)
    assert after.price(english.name).basis == "benchmark"
    for job in parsers:
        # Those with random layers and those of other languages are alike; the table's error is the same for them.
        assert after.price(job.name).seconds == pytest.approx(3 * before.price(job.name).seconds)
    scored = next(name for name, job in after.jobs.items() if job.rule == "evaluate")
    assert after.price(scored) == before.price(scored)


def test_what_a_job_had_of_a_gpu_counts(root, registers, tmp_path):
    """A training that was alone on a GPU is not taken for one of twelve that shared it."""
    choice = {"targets": ["align-predict/table1"], "share": 12}
    before = estimate(root, registers, tmp_path, ["config.small.yaml"], **choice)
    base = next(name for name in before.jobs if name.endswith("models/small/model.safetensors"))
    tuned = [name for name, job in before.jobs.items() if job.rule == "finetune"][:12]

    def after(spans):
        for name, (start, end) in spans.items():
            write_benchmark(tmp_path / "times", before.jobs[name], end - start)
            os.utime(tmp_path / "times" / before.jobs[name].benchmark, (BEGIN + end, BEGIN + end))
        return estimate(root, registers, tmp_path, ["config.small.yaml"], **choice, benchmarks=tmp_path / "times")

    plan = after({base: (0, 500)})
    idle = before.price(base).idle / before.price(base).seconds
    assert plan.price(base).seconds == 500 and plan.price(base).idle == pytest.approx(500 * idle)
    assert plan.price(base).shared(12) > 400
    # Twelve at a time for two minutes: ten seconds of the GPU each.
    plan = after(dict.fromkeys(tuned, (500, 620)))
    assert plan.price(tuned[0]).shared(12) == pytest.approx(10)
    assert plan.totals(tuned).gpu_seconds == pytest.approx(120)
    # What was trained on a CPU meanwhile tells nothing of a GPU.
    note = tmp_path / before.jobs[tuned[0]].subject.path() / "training.json"
    note.parent.mkdir(parents=True)
    note.write_text('{"device": "cpu"}')
    plan = after({tuned[0]: (0, 9000)})
    assert plan.price(tuned[0]).seconds < 1000 and plan.price(base).seconds == 500 and plan.measured == 12
    note.unlink()
    # Times that were lost, so that nothing is known of sharing: all files of one moment.
    plan = after(dict.fromkeys([base, *tuned], (0, 120)))
    assert plan.price(base) == before.price(base) and plan.measured == 0


def measured_seconds(plan, benchmarks: Path) -> dict[str, float]:
    found = {}
    for name, job in plan.jobs.items():
        file = benchmarks / job.benchmark
        if job.benchmark and file.is_file():
            found[name] = float(next(csv.DictReader(file.open(newline=""), delimiter="\t"))["s"])
    return found


def test_the_demo_takes_what_the_plan_says(root, registers, tmp_path):
    folder = root / "results" / "demo" / "benchmarks"
    plan = estimate(root, registers, tmp_path, ["config.demo.yaml"], hardware="cpu", cores=2)
    measured = measured_seconds(plan, folder)
    if len(measured) < 300:
        pytest.skip(f"no finished demo run: {folder} has {len(measured)} benchmark files of it (make demo)")
    predicted = sum(plan.price(name).seconds for name in measured)
    # The costs are those of x86 cores; slow cores of another kind have taken 2.35 times as long.
    least = 0.5 if platform.machine() == "x86_64" else 0.33
    assert least < predicted / sum(measured.values()) < 2
    # From its own files the plan must be far nearer.
    plan = estimate(root, registers, tmp_path, ["config.demo.yaml"], hardware="cpu", cores=2, benchmarks=folder)
    predicted = sum(plan.price(name).seconds for name in measured)
    assert 0.75 < predicted / sum(measured.values()) < 1.33


def run_plan(root, folder, *arguments):
    command = [sys.executable, str(root / "scripts" / "plan.py"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("demo", [True, False])
def test_the_program_prints_a_readable_plan(root, tmp_path, demo):
    done = run_plan(root, tmp_path, *([str(root / "config.demo.yaml")] if demo else []))
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 100
    for words in ("fine-tunings", "finetune_random", "Critical path", "Wall time", "Disk", "make_report"):
        assert words in done.stdout
    assert ("GPU-hours" in done.stdout) != demo
    assert ("NON-COMMERCIAL" in done.stdout) != demo


def test_the_small_runs_jobs_share_a_card(root, tmp_path, monkeypatch):
    monkeypatch.delenv("CROSSALIGN_GPU_SHARE", raising=False)
    small = str(root / "config.small.yaml")
    told = run_plan(root, tmp_path, small).stdout
    assert "with 12 jobs on each" in told  # profiles/small
    assert "and 16 cores: about" in told
    assert "between half and twice" in told
    monkeypatch.setenv("CROSSALIGN_GPU_SHARE", "3")
    assert "with 3 jobs on each" in run_plan(root, tmp_path, small).stdout
    alone = run_plan(root, tmp_path, small, "--share", "1").stdout
    assert "jobs on each" not in alone
    assert "jobs on each" not in run_plan(root, tmp_path, small, "--hardware", "cpu").stdout


@pytest.mark.parametrize(
    ("gpu", "words", "machine"),
    [
        ("", "as there is no GPU here", "1 x H200"),
        ("Tesla V100-SXM2-32GB", "Times of Tesla V100-SXM2-32GB, which is here", "1 x V100"),
        ("NVIDIA A100", "Times of an H200, as none are known of NVIDIA A100", "1 x H200"),
    ],
)
def test_the_plan_says_whose_times_it_takes(root, tmp_path, monkeypatch, gpu, words, machine):
    """As nvidia-smi, which stands in, names the GPU."""
    driver = tmp_path / "bin" / "nvidia-smi"
    driver.parent.mkdir()
    driver.write_text(f"#!/bin/sh\necho '{gpu}'\n" if gpu else "#!/bin/sh\nexit 9\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(driver.parent), prepend=os.pathsep)
    told = run_plan(root, tmp_path, "--targets", "anc/figure4").stdout
    assert words in told and machine in told
    chosen = run_plan(root, tmp_path, "--targets", "anc/figure4", "--hardware", "t4").stdout
    assert "Times of" not in chosen.split("\n\n")[0] and "1 x T4" in chosen


def test_a_closed_pipe_is_no_fault(root, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, str(root / "scripts" / "plan.py")]
        done = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--targets", "everything"], "error: unknown target 'everything'"),
        (["--gpus", "0"], "'0' is not a whole number above zero"),
        (["--hardware", "abacus"], "invalid choice: 'abacus'"),
        (["--benchmarks", "nowhere"], "error: --benchmarks: there is no folder nowhere"),
        (["absent.yaml"], "error: absent.yaml: cannot read"),
    ],
)
def test_bad_options_are_told(root, tmp_path, arguments, message):
    done = run_plan(root, tmp_path, *arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


MBERT = Model("mbert", "", "", None, "", "mlm", 177_262_848, 12, 768, "104", "")
REF = Tuned("mbert", "pos", "en_ewt", "ref", 1)
RANDOM = Tuned("mbert", "pos", "en_ewt", "random-1-2", 1)
TRIAL = Tuned("mbert", "pos", "en_ewt", "grid-16-5e-5", 1)
CONTINUAL = Tuned("mbert+adjust-hi-30k-avg-all", "adjust-nli", "multinli_en", "continual", 1)
BILSTM = Tuned("bilstm", "unseen-parsing", "wo_wtb", "ref", 1)


@pytest.mark.parametrize(
    ("choice", "runs"),
    [("all", [REF, RANDOM, TRIAL, CONTINUAL, BILSTM]), ("ref", [REF, CONTINUAL, BILSTM]), ("none", [BILSTM])],
)
def test_what_stays(choice, runs):
    every = [REF, RANDOM, TRIAL, CONTINUAL, BILSTM]
    assert [run for run in every if kept({"keep_models": choice}, run)] == runs


def test_disk_by_what_becomes_of_models(root):
    adapted = Adapted("mbert", Mlm("wo"), 1)
    paper, demo = load([]), load([root / "config.demo.yaml"])
    disk = model_disk(paper, [REF, RANDOM, TRIAL, adapted], {"mbert": MBERT}, lambda run: (12, 768))
    assert disk["fine-tuned, kept"] == (1, tuned_bytes((12, 768)))
    assert disk["fine-tuned, deleted after their last use"] == (2, 2 * tuned_bytes((12, 768)))
    assert disk["adapted or pretrained"] == (1, 4 * 177_262_848)
    # Models of a folder and models that are made here may have any size.
    disk = model_disk(demo, [REF, BILSTM, adapted, Base("mono-wo")], {"mbert": MBERT}, lambda run: (12, 64))
    bilstm = (demo["bilstm"]["layers"], demo["bilstm"]["hidden"])
    assert disk["fine-tuned, kept"] == (2, tuned_bytes((12, 64)) + tuned_bytes(bilstm))
    assert disk["adapted or pretrained"] == (2, 2 * tuned_bytes((12, 64)))


def test_sizes_are_readable():
    assert [readable(size) for size in (5, 1_500, 2_340_000, 4e11, 2.5e12)] == [
        "5 B", "1.5 kB", "2.34 MB", "400 GB", "2.5 TB"
    ]  # fmt: skip


BEGIN = 1_700_000_000
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
    ]
)
# start and end of each, in seconds: evaluation and vectors share the GPU for ten of them
TIMES = {"model": (0, 100), "tuned": (100, 160), "scores": (160, 180), "vectors": (170, 200), "similarity": (200, 230)}
TOOK = {name: end - start for name, (start, end) in TIMES.items()}
ENDS = {name: BEGIN + end for name, (_, end) in TIMES.items()}


def test_seconds_of_a_gpu_are_divided_among_the_jobs_that_share_it():
    # Comparison needs no GPU.
    assert parts_of_gpus(JOBS, TOOK, ENDS) == {"model": 100, "tuned": 60, "scores": 15, "vectors": 25}
    assert parts_of_gpus(JOBS, TOOK, ENDS, gpus=2)["vectors"] == 30
    # A copy has lost the times: jobs end before what they read.
    assert parts_of_gpus(JOBS, TOOK, dict.fromkeys(ENDS, BEGIN)) == {}


def test_seconds_of_waiting_for_a_gpu_are_no_work(tmp_path):
    write(tmp_path, JOBS, TIMES)
    log = tmp_path / "logs" / JOBS.jobs["vectors"].benchmark.replace(".tsv", ".log")
    log.parent.mkdir(parents=True)
    log.write_text(f"waiting for a GPU (0): taken\n{WAITED % 20}\nworking on GPU 0\n")
    (tmp_path / "benchmarks" / "evaluate" / "a.tsv").write_text("s\n")  # A job that was killed while it wrote.
    took = read_benchmarks(tmp_path / "benchmarks", JOBS.jobs.values())
    assert took == {"model": 100, "tuned": 60, "vectors": 10, "similarity": 30}


def write(results, graph, times):
    for name, (start, end) in times.items():
        file = results / "benchmarks" / graph.jobs[name].benchmark
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"s\th:m:s\tmax_rss\n{end - start}\t0:00:01\t1.0\n")


@pytest.fixture
def demo(root, tmp_path):
    """A folder with benchmark files of the demo's first table, one job after another."""
    catalog = catalog_of(load([root / "config.demo.yaml"]))
    graph = planned(catalog, ["align-predict/table1"])
    names = [name for name, job in graph.jobs.items() if job.rule.startswith("finetune")]
    names += [name for name, job in graph.jobs.items() if job.rule == "evaluate"]
    write(tmp_path / "results" / "demo", graph, {name: (6 * at, 6 * at + 6) for at, name in enumerate(names)})
    return catalog, tmp_path, len(names)


def test_the_page_shows_what_jobs_took(demo):
    catalog, folder, many = demo
    results = folder / "results" / "demo"
    content = page(gather(catalog.config, results, results / "report" / "index.html"))
    assert re.search(rf"<dt>Time</dt><dd>\s*{many / 10:.1f} min of {many} jobs", content)
    assert f'<th scope="row">fine-tuning</th><td>{many // 2}</td><td>{many / 20:.1f}</td>' in content

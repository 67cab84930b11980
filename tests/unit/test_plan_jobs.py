"""The plan: which jobs there are, what is left of them, the longest chain, and the wall time."""

import pytest

from crossalign.catalog.config import load
from crossalign.catalog.inputs import Inputs, Job
from crossalign.papers.all_items import catalog_of
from crossalign.plan.jobs import Graph, Machines
from crossalign.plan.show import columns, duration
from crossalign.runtime.errors import UserError


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


def test_targets_are_rules_items_or_files():
    inputs = Inputs(catalog_of(load([])))
    assert inputs.items_of("anc/figure4") == ["anc/figure4"]
    assert inputs.items_of("results/paper/tables/adjust/table2.csv") == ["adjust/table2"]
    assert len(inputs.items_of("talk")) == 10
    assert inputs.items_of("grid") == ["align-predict/table3"]
    for target in ("everything", "anc/figure99", "results/demo/tables/adjust/table2.csv", "anc/"):
        with pytest.raises(UserError, match=f"unknown target '{target}'.*align_predict"):
            inputs.target(target)


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

"""Critical path and wall time."""

from hypothesis import given
from hypothesis import strategies as st

from crossalign.plan.jobs import Job
from crossalign.plan.schedule import Machines, critical_path, tails, wall_time
from crossalign.plan.show import columns, duration


def graph(*jobs):
    return {job.name: job for job in jobs}


DIAMOND = graph(
    Job("a", ("a",)),
    Job("b", ("b",), ("a",), gpus=1),
    Job("c", ("c",), ("a",), gpus=1),
    Job("d", ("d",), ("b", "c")),
)
SECONDS = {"a": 1, "b": 5, "c": 2, "d": 1}.__getitem__


def test_the_longest_chain():
    assert critical_path(DIAMOND, DIAMOND, SECONDS) == ["a", "b", "d"]
    assert tails(DIAMOND, DIAMOND, SECONDS) == {"a": 7, "b": 6, "c": 3, "d": 1}


def test_only_what_is_left_counts():
    assert critical_path(DIAMOND, {"c", "d"}, SECONDS) == ["c", "d"]
    assert wall_time(DIAMOND, {"c", "d"}, SECONDS, Machines(1, 4)) == 3
    assert critical_path(DIAMOND, set(), SECONDS) == []
    assert wall_time(DIAMOND, set(), SECONDS, Machines(1, 4)) == 0


def test_gpus_and_cores_bound_what_runs_together():
    assert wall_time(DIAMOND, DIAMOND, SECONDS, Machines(2, 4)) == 7
    assert wall_time(DIAMOND, DIAMOND, SECONDS, Machines(1, 4)) == 9
    # A GPU job needs a core too, and without GPUs a core alone.
    assert wall_time(DIAMOND, DIAMOND, SECONDS, Machines(2, 1)) == 9
    assert wall_time(DIAMOND, DIAMOND, SECONDS, Machines(0, 2)) == 7


def test_transfers_share_one_line_and_threads_shrink_to_what_there_is():
    jobs = graph(Job("download_file", ("a",)), Job("download_model", ("b",)), Job("x", ("c",), threads=8))
    assert wall_time(jobs, jobs, lambda name: 1, Machines(1, 2)) == 3
    assert wall_time(jobs, jobs, lambda name: 1, Machines(1, 10)) == 2


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 1), st.sets(st.integers(0, 30), max_size=3)), max_size=25))
def test_no_schedule_beats_the_bounds(plans):
    jobs = graph(
        *(
            Job("r", (f"{place:02}",), tuple(f"{need:02}" for need in sorted(needs) if need < place), gpus=gpu)
            for place, (_, gpu, needs) in enumerate(plans)
        )
    )
    lengths = {f"{place:02}": float(seconds) for place, (seconds, _, _) in enumerate(plans)}
    chain = sum(lengths[name] for name in critical_path(jobs, jobs, lengths.__getitem__))
    for gpus, cores in ((1, 1), (2, 3), (40, 40)):
        wall = wall_time(jobs, jobs, lengths.__getitem__, Machines(gpus, cores))
        work = sum(lengths.values()) / cores
        on_gpus = sum(lengths[name] for name, job in jobs.items() if job.gpus) / gpus
        assert max(chain, work, on_gpus) - 1e-9 <= wall <= sum(lengths.values()) + 1e-9
        if cores == 1:
            assert wall == sum(lengths.values())
        if cores == 40:
            assert wall == chain


def test_durations_and_columns():
    assert [duration(seconds) for seconds in (0.35, 61, 120, 7200, 864000)] == [
        "0.35 s",
        "61 s",
        "2 min",
        "2 h",
        "10.0 days",
    ]
    assert list(columns([["a", 1], ["bcd", 100]])) == ["a      1", "bcd  100"]

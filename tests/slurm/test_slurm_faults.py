"""What a cluster does to jobs: every fault ends with all results made, and no job at work twice at the same time."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from tests.slurm.harness import Run, journal
from tests.slurm.settings import GPUS, PARTITION

MINIATURE = Path(__file__).with_name("miniature.smk")
NAMES = ["ash", "birch", "cedar", "elm", "fir"]
LIMIT = 4
SAVING = 4  # seconds that a checkpoint takes: more than SLURM lets the rest of a step live


def start(cluster, folder, *arguments, names=NAMES, saving=0):
    config = [f"names={','.join(names)}", f"saving={saving}"]
    return Run(cluster, folder, "--config", *config, *arguments, snakefile=MINIATURE)


def working(folder):
    """The workers that have started and not stopped: the last line of each name is its start."""
    last = {line["name"]: line for line in journal(folder)}
    return {name: line for name, line in last.items() if line["event"] == "start"}


def starts(folder, name):
    return [line for line in journal(folder) if line["name"] == name and line["event"] == "start"]


def preempt(cluster, node):
    """A job of more importance that wants a whole node."""
    wish = ("--partition=urgent", f"--nodelist={node}", "--exclusive")
    cluster.run("sbatch", *wish, "--output=/dev/null", "--wrap", "sleep 2")


@pytest.fixture(scope="module")
def disturbed(cluster, tmp_path_factory):
    """One run with at most four GPUs in which every fault strikes one job; the tests look at what it left."""
    folder = tmp_path_factory.mktemp("faults")
    run = start(cluster, folder, "--resources", f"gpu={LIMIT}", "slot=1")
    seen = []

    def four_at_work():
        seen.append(len(cluster.jobs("RUNNING", "PENDING")))
        return len(working(folder)) == LIMIT

    run.wait(four_at_work, "four jobs at work")
    first = list(working(folder).values())
    cancelled, killed, stranded, quiet = (line["name"] for line in first)

    # The card that a fault sets free goes to whichever job is next.
    cluster.run("scancel", working(folder)[cancelled]["job"])
    run.wait(lambda: len(working(folder)) == LIMIT - 1, "the cancelled job to stop")
    run.wait(four_at_work, "another to take its place")

    os.kill(working(folder)[killed]["process"], signal.SIGKILL)
    run.wait(lambda: four_at_work() and len(journal(folder)) == 7, "another to take the killed job's place")

    node = working(folder)[stranded]["node"]
    cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    run.wait(lambda: len(starts(folder, stranded)) == 2, "the job of the lost node to start again")
    cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
    run.wait(four_at_work, "four jobs at work again")

    cluster.stop_controller()
    Path(folder / f"{quiet}.go").touch()
    run.wait(lambda: (folder / f"{quiet}.done").exists(), "a job to end while the controller is down")
    time.sleep(5)  # some status queries without an answer
    cluster.start_controller()

    (folder / "go").touch()
    said = run.finish()
    faults = {"cancelled": cancelled, "killed": killed, "stranded": stranded, "quiet": quiet}
    return {"folder": folder, "first": first, "seen": seen, "said": said, **faults}


def test_all_results_are_there(disturbed):
    assert {file.name for file in disturbed["folder"].glob("*.done")} == {f"{name}.done" for name in NAMES}


def test_no_job_is_at_work_twice_at_once(disturbed):
    assert "twice at once" not in {line["event"] for line in journal(disturbed["folder"])}


def test_the_limit_of_gpus_is_respected(disturbed):
    assert max(disturbed["seen"]) == LIMIT


def test_every_job_has_a_card_of_its_own(disturbed):
    cards = {(line["node"], line["cards"]) for line in disturbed["first"]}
    assert len(cards) == LIMIT
    assert {card for _, card in cards} <= {str(card) for card in range(GPUS)}


@pytest.mark.parametrize("fault", ["cancelled", "killed"])
def test_a_lost_job_is_submitted_again(disturbed, fault):
    assert len({line["job"] for line in starts(disturbed["folder"], disturbed[fault])}) == 2


def test_jobs_of_a_lost_node_go_back_into_the_queue(disturbed):
    first, second, *_ = starts(disturbed["folder"], disturbed["stranded"])
    assert first["job"] == second["job"]
    assert first["node"] != second["node"]


def test_a_job_that_ends_while_the_controller_is_down_counts(disturbed):
    ends = [line["name"] for line in journal(disturbed["folder"]) if line["event"] == "end"]
    assert sorted(ends) == NAMES


def test_efficiency_is_reported_and_logs_of_good_jobs_are_gone(disturbed):
    reports = list((disturbed["folder"] / "results" / "slurm-efficiency").glob("*.csv"))
    assert len(reports) == 1
    assert "rule_work" in reports[0].read_text()
    kept = {file.stem for file in (disturbed["folder"] / "results" / "slurm-logs").rglob("*.log")}
    failed = {starts(disturbed["folder"], disturbed[fault])[0]["job"] for fault in ("cancelled", "killed")}
    assert kept == failed


def warn(cluster, job, node):
    """What SLURM does at the time of --signal: all steps get the signal, the batch script does not."""
    cluster.run("scancel", "--signal=TERM", job)


@pytest.mark.parametrize(
    ("partition", "strike"),
    [(PARTITION, warn), ("patient", lambda cluster, _, node: preempt(cluster, node))],
    ids=["warned", "preempted"],
)
def test_there_is_time_to_save(plain_cluster, tmp_path, partition, strike):
    """Warned of its time limit, or preempted where preemption has a GraceTime: the step lasts until all is saved."""
    run = start(
        plain_cluster, tmp_path, "--set-resources", f"work:slurm_partition={partition}", names=["one"], saving=SAVING
    )
    run.wait(lambda: working(tmp_path), "a job at work")
    first = working(tmp_path)["one"]
    strike(plain_cluster, first["job"], first["node"])
    # SLURM may send a signal twice. More make sure that one meets Snakemake at work on another.
    for _ in range(50):
        os.kill(first["parent"], signal.SIGTERM)
        time.sleep(0.0001)
    run.wait(lambda: len(starts(tmp_path, "one")) == 2, "the job to start again")
    (tmp_path / "go").touch()
    run.finish()
    assert [line["event"] for line in journal(tmp_path)] == ["start", "stopped", "start", "end"]
    second = starts(tmp_path, "one")[1]
    assert second["checkpoint"]
    assert second["job"] != first["job"]
    log = tmp_path / "results" / "slurm-logs" / "rule_work" / "one" / f"{first['job']}.log"
    assert "returned non-zero exit status 75" in log.read_text()


def test_what_ends_while_snakemake_is_dead_stays(plain_cluster, tmp_path):
    first = start(plain_cluster, tmp_path, names=["ended", "running"])
    first.wait(lambda: len(working(tmp_path)) == 2, "two jobs at work")
    first.kill()
    orphan = working(tmp_path)["running"]["job"]
    (tmp_path / "ended.go").touch()
    plain_cluster.wait(lambda: list(plain_cluster.jobs()) == [orphan], "one job to end")
    shutil.rmtree(tmp_path / ".snakemake" / "locks")  # what `snakemake --unlock` does
    second = start(plain_cluster, tmp_path, names=["ended", "running"])
    second.wait(lambda: len(starts(tmp_path, "running")) == 2, "the other job to start again")
    (tmp_path / "go").touch()
    assert f"are cancelled first: {orphan}\n" in second.finish()
    assert len(starts(tmp_path, "ended")) == 1
    assert "twice at once" not in {line["event"] for line in journal(tmp_path)}


def test_a_run_without_a_lock_leaves_the_jobs_of_another_alone(plain_cluster, tmp_path):
    first = start(plain_cluster, tmp_path, names=["one"])
    first.wait(lambda: working(tmp_path), "a job at work")
    second = start(plain_cluster, tmp_path, "--nolock", names=["two"])
    second.wait(lambda: len(working(tmp_path)) == 2, "a job of the second run at work")
    (tmp_path / "go").touch()
    assert f"left alone: {starts(tmp_path, 'one')[0]['job']}\n" in second.finish()
    first.finish()
    assert [line["event"] for line in journal(tmp_path)] == ["start", "start", "end", "end"]

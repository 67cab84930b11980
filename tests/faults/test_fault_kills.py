"""Killed at random moments, again and again, a run ends with the results of one that nobody disturbed."""

import shutil
import time
from collections import Counter
from random import Random

from tests.faults.harness import Run, content, differing, forget, left_halves, make_project

from crossalign.runtime.workarounds import LOCKS

# Each line is a start of Snakemake and what befalls it. Jobs are tried again, as on a cluster, until the last blow.
BLOWS = (
    ("job", "stop", "everything"),
    ("stop", "job", "snakemake"),
    ("job", "everything"),
    ("stop", "stop and kill"),
)
ROUNDS = 6


def test_kills_at_random_moments_change_nothing(root, project, tmp_path):
    random, folder, done, starts = Random(8), tmp_path / "killed", Counter(), 0
    make_project(root, folder)
    wanted = content(project)
    while done.total() < ROUNDS:
        # What `snakemake --unlock` removes, without the seconds that it takes to start; it has a test of its own.
        shutil.rmtree(folder / LOCKS, ignore_errors=True)
        run = Run(folder, "--retries", "3")
        for way in BLOWS[starts % len(BLOWS)]:
            # Some jobs further on, or a checkpoint later.
            count = random.randint(1, 3)
            if not run.wait(lambda run=run, n=count: run.touched("logs") + run.touched("checkpoints") >= n):
                break
            time.sleep(random.uniform(0, random.choice((0.3, 1, 4))))
            if way in ("job", "stop", "stop and kill") and not run.wait(run.jobs):
                break
            done[run.strike(way, random)] += 1
            run.started = time.time()
        if run.end() == 0 and done.total() < ROUNDS:
            # Finished all the same: a result to look at, and then there must be work again.
            assert differing(content(folder), wanted) == [], done
            forget(folder)
        starts += 1
        assert starts <= ROUNDS, done
    # Which blows fall depends on what runs at that moment; where there is no job or server, all goes.
    assert done.total() >= ROUNDS and len(done) >= 2 and "everything" in done, done
    shutil.rmtree(folder / LOCKS, ignore_errors=True)
    last = Run(folder)
    assert last.end() == 0, last.said()
    assert differing(content(folder), wanted) == [], done
    assert left_halves(folder / "results") == []
    assert not list((folder / "results" / "demo" / "checkpoints").rglob("*.safetensors"))

"""Equivalence on the device at hand: `python benchmarks/train_step.py --check --data DIR`."""

from unittest.mock import patch

import numpy as np
from common import attempt

from crossalign.engine import kernels
from crossalign.engine.finetune import FineTuning

# No dropout, and small enough to be quick.
SMALL = {"hidden": 256, "heads": 4, "intermediate": 1024, "layers": 4, "hidden_dropout": 0.0, "attention_dropout": 0.0}


def distance(one: FineTuning, two: FineTuning) -> float:
    """Relative difference of all weights together. Single parameters would mislead: some have no effect on the loss (a
    key's bias, a bias that shifts all scores alike), so that their gradient is rounding, which Adam blows up."""
    a, b = one.engine.arena.master, two.engine.arena.master
    return float((a - b).norm() / b.norm())


def steps(tuning: FineTuning, count: int) -> list[float]:
    """Losses of the first steps."""
    for batch in tuning.stream.epoch(0)[:count]:
        tuning.engine.step(batch)
    return tuning.engine.losses[:count].tolist()


def limit(precision: str) -> float | str:
    """How much two ways to compute the same may differ after 20 steps."""
    return 1e-5 if precision == "fp32" else "rounding of bf16"


def switched(bench, precision: str, owner, name: str, other) -> tuple[FineTuning, FineTuning, float]:
    """A training as usual, one with `other` in the place of a function, and the largest difference of their losses."""
    usual = bench.tuning("pos", precision, bench.encoder(**SMALL))
    a = steps(usual, 20)
    with patch.object(owner, name, other):
        changed = bench.tuning("pos", precision, bench.encoder(**SMALL))
        b = steps(changed, 20)
    return usual, changed, float(np.abs(np.subtract(a, b)).max())


def graph_equals_eager(bench, task: str, precision: str) -> dict:
    """The captured step on static shapes against the eager one on exact shapes."""
    eager = bench.tuning(task, precision, bench.encoder(**SMALL), capture=False)
    graph = bench.tuning(task, precision, bench.encoder(**SMALL), capture=bench.cuda)
    graph.engine.static = True
    a, b = steps(eager, 20), steps(graph, 20)
    losses = float(np.abs(np.subtract(a, b)).max())
    return {"weights": distance(graph, eager), "losses": losses, "limit": limit(precision)}


def kernels_equal_pytorch(bench, precision: str) -> dict:
    """The Triton kernels against plain PyTorch."""
    with_kernels, without, losses = switched(bench, precision, kernels, "available", lambda: False)
    found = {"available": kernels.available(), "weights": distance(with_kernels, without)}
    return found | {"losses": losses, "limit": limit(precision)}


def sliced_equals_full(bench) -> dict:
    """Only the embedding rows that occur against all of them."""
    sliced, full, losses = switched(bench, "fp32", FineTuning, "_slice", lambda self, encoder: None)
    rows = sliced.model.encoder.rows.to(bench.device)
    table = (full.model.encoder.word.weight[rows] - sliced.model.encoder.word.weight).detach()
    return {"losses": losses, "table": float(table.abs().max()), "limit": 1e-5}


def dropout_varies(bench) -> dict:
    """Replays of one graph on one batch must not repeat the dropout mask; a seed must repeat the whole run."""
    shape = SMALL | {"hidden_dropout": 0.1, "attention_dropout": 0.1}

    def losses() -> list[float]:
        tuning = bench.tuning("pos", "bf16" if bench.cuda else "fp32", bench.encoder(**shape))
        tuning.engine.numbers[:, 0] = 0.0
        batch = tuning.stream.epoch(0)[0]
        for _ in range(6):
            tuning.engine.step(batch)
        return tuning.engine.losses[:6].tolist()

    one, two = losses(), losses()
    return {"losses differ": len(set(one)) == 6, "repeatable": bool(np.allclose(one, two, rtol=1e-3)), "losses": one}


def resume_goes_on(bench) -> dict:
    """State saved after 10 steps and loaded into a new engine, against 20 steps in one go."""
    shape = SMALL | {"hidden_dropout": 0.1, "attention_dropout": 0.1}
    whole = bench.tuning("pos", "fp32", bench.encoder(**shape))
    steps(whole, 20)
    first = bench.tuning("pos", "fp32", bench.encoder(**shape))
    steps(first, 10)
    state = {name: value.cpu().clone() for name, value in first.engine.state().items()}
    second = bench.tuning("pos", "fp32", bench.encoder(**shape))
    second.engine.load_state(state)
    for batch in second.stream.epoch(0)[10:20]:
        second.engine.step(batch)
    return {"weights": distance(second, whole), "limit": "rounding of atomics"}


def run(bench) -> None:
    """All checks; each prints what it found."""
    for task in ("pos", "parsing", "nli", "qa"):
        attempt(f"graph equals eager, {task}, fp32", graph_equals_eager, bench, task, "fp32")
    attempt("dropout varies", dropout_varies, bench)
    attempt("resume goes on", resume_goes_on, bench)
    attempt("sliced equals full", sliced_equals_full, bench)
    if bench.cuda:
        attempt("graph equals eager, pos, bf16", graph_equals_eager, bench, "pos", "bf16")
        attempt("kernels equal PyTorch, fp32", kernels_equal_pytorch, bench, "fp32")
        attempt("kernels equal PyTorch, bf16", kernels_equal_pytorch, bench, "bf16")

"""Significance marks of the `adjust` tables, from the per-example predictions of two systems.

The tests themselves are in `crossalign.analysis.significance`; this is the one place that calls them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.sets import DataSet
from crossalign.results.reading import Results, set_key
from crossalign.tasks.predictions import read_predictions

if TYPE_CHECKING:
    import numpy as np

LEVEL = 0.05
METRICS = {"nli": ("accuracy",), "qa": ("F1",), "ner": ("F1", "token_F1")}


@dataclass(frozen=True)
class Mark:
    """Whether two systems differ at the level of the paper; None, with a reason, when it cannot be said."""

    differs: bool | None
    reason: str = ""
    p: float | None = None
    # The smallest p that the test can give, however clear the difference, and the seeds that it is taken over.
    smallest_p: float | None = None
    seeds: int = 0


def marks(
    results: Results, run_a: Sequence[Tuned], run_b: Sequence[Tuned], data: DataSet, metric: str | None = None
) -> Mark:
    """Whether two systems, each given as its seeds, differ on a set (`adjust`, section 5.1).

    NLI and QA: paired t-test over examples, averaged over the seeds. NER: permutation test over the sentences of all
    seeds that both have.
    """
    task = run_a[0].task
    metric = metric or METRICS[task][0]
    counts = [
        {run.seed: found for run in runs if (found := _counts(results, run, data, metric))} for runs in (run_a, run_b)
    ]
    common = sorted(counts[0].keys() & counts[1].keys())
    if not common:
        return Mark(None, "predictions are missing")
    import numpy as np

    from crossalign.analysis.significance import example_values, paired_t_test, permutation_test

    order = counts[0][common[0]][0]
    stacked = []
    for side in counts:
        aligned = [_aligned(order, *side[seed]) for seed in common]
        if any(array is None for array in aligned):
            return Mark(None, "the predictions are of different examples; evaluate the models again")
        stacked.append(np.stack(aligned))
    if task == "ner":
        test = permutation_test(*stacked)
    elif len(order) < 2:
        return Mark(None, "there are too few examples")
    else:
        test = paired_t_test(*map(example_values, stacked))
    return Mark(test.p < LEVEL, p=test.p, smallest_p=test.smallest_p, seeds=len(common))


def _counts(results: Results, run: Tuned, data: DataSet, metric: str) -> "tuple[list[str], np.ndarray] | None":
    """The examples of a run on a set and their counts. A file is read once, and only counts are kept of it."""
    kept = results.counts
    if run not in kept:
        kept[run] = {}
        path = results.folder / run.path() / "predictions.jsonl.gz"
        if path.is_file():
            from crossalign.analysis.significance import example_counts
            from crossalign.tasks import get_task

            task = get_task(run.task)
            _, sets = read_predictions(path)
            for name, rows in sets.items():
                ids = [row["id"] for row in rows]
                for one in METRICS[run.task]:
                    kept[run][name, one] = (ids, example_counts(task, rows, one))
    return kept[run].get((set_key(data), metric))


def _aligned(order: list[str], ids: list[str], counts: "np.ndarray") -> "np.ndarray | None":
    """The counts in the order of another run's examples; None when they are other examples."""
    if ids == order:
        return counts
    places = {name: place for place, name in enumerate(ids)}
    if len(places) != len(order) or any(name not in places for name in order):
        return None
    return counts[[places[name] for name in order]]

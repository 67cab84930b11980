"""Scores and similarities of a run as tidy pandas frames, one row per number (columns: docs/use/analysis.md).

Every table and figure reads its numbers through this module, from the files of its own runs, so another run's score
makes none of them again. The rule `gather_results` writes the frames of all runs for the user.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossalign.catalog.addresses import Run, Tuned
from crossalign.catalog.sets import DataSet
from crossalign.catalog.targets import KINDS
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import read_json, write_atomic

if TYPE_CHECKING:
    import pandas as pd

# Similarity as the papers measure it.
AS_MEASURED = "none"

SCORES = (
    *("paper", "model", "task", "source", "target", "set", "init", "seed", "metric", "value", "n"),
    *("low", "high", "preset", "train", "address"),
)
SIMILARITY = (
    *("paper", "model", "task", "source", "init", "seed", "corpus", "pair", "layer", "index", "control", "value"),
    *("sampling", "lead_sampling", "preset", "train", "address"),
)
DISTANCES = (
    *("paper", "model", "task", "source", "init", "seed", "language", "related", "unrelated", "separation"),
    *("related_error", "unrelated_error", "separation_error", "preset", "train", "address"),
)
# What a similarity file must have; those made before there were controls and resamples lack the other columns.
NEEDED = ("pair", "layer", "index", "value")
NUMBERS = ("layer", "value", "sampling", "lead_sampling")
EXPECTED = "scores by set and metric, as in {'trees/en_pud/test': {'LAS': 81.2}}"
# All other columns are text.
TYPES = {"seed": "Int64", "n": "Int64", "layer": "int64"}
TYPES |= dict.fromkeys(("value", "low", "high", "sampling", "lead_sampling"), "float64")
TYPES |= {f"{name}{end}": "float64" for name in ("related", "unrelated", "separation") for end in ("", "_error")}


def set_key(data: DataSet) -> str:
    """The name of a set in scores.json: trees/en_pud/test."""
    return f"{data.kind}/{data.name}/{data.split}"


def described(run: Run) -> dict[str, Any]:
    """The columns that say which model a number is of; a model without a task has no task, training set and init."""
    if not isinstance(run, Tuned):
        return {"model": run.name, "seed": getattr(run, "seed", None), "address": run.path()}
    return {
        "model": run.model,
        "task": run.task,
        "source": "-".join(DataSet(KINDS[run.task], run.source, "train").languages),
        "init": run.init,
        "seed": run.seed,
        "preset": run.preset,
        "train": run.source,
        "address": run.path(),
    }


def score_rows(path: Path, run: Tuned) -> Iterator[dict[str, Any]]:
    """One record per set and metric; the ends of a metric's interval stand beside it."""
    scores = read_json(path, EXPECTED)
    if scores is None:
        return
    if not all(isinstance(each, dict) for each in scores.values()):
        raise UserError(f"{path}: expected {EXPECTED}")
    model = described(run)
    for name, metrics in scores.items():
        for metric, number in metrics.items():
            if not isinstance(number, int | float) or not math.isfinite(number):
                raise UserError(f"{path}: {name}, {metric}: {number!r} is no finite number")
        where = model | {"set": name, "target": "-".join(DataSet(*name.split("/", 2)).languages), "n": metrics.get("n")}
        ends = {f"{metric}_{end}" for metric in metrics for end in ("low", "high")}
        for metric in sorted(metrics.keys() - ends - {"n"}):
            interval = {end: metrics.get(f"{metric}_{end}") for end in ("low", "high")}
            yield where | {"metric": metric, "value": metrics[metric]} | interval


def typed(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The same columns, each of its type, also where a frame is empty."""
    return frame.astype({name: TYPES.get(name, "str") for name in frame})


def scores(folder: Path, runs: Iterable[Tuned]) -> "pd.DataFrame":
    """The scores of fine-tuned models in results/<run>; models that were not run have no rows."""
    import pandas as pd

    rows = [row for run in runs for row in score_rows(folder / run.path() / "scores.json", run)]
    return typed(pd.DataFrame(rows, columns=[name for name in SCORES if name != "paper"]))


def similarity(folder: Path, runs: Iterable[Run], corpora: Iterable[str]) -> "pd.DataFrame":
    """The similarities of models on parallel corpora; what was not computed has no rows."""
    import pandas as pd

    columns = [name for name in SIMILARITY if name != "paper"]
    frames = [pd.DataFrame(columns=columns)]
    corpora = list(corpora)
    for run in runs:
        for corpus in corpora:
            frame = _read_similarity(folder / "similarity" / run.path() / f"{corpus}.csv")
            if frame is not None:
                frames.append(frame.assign(**described(run), corpus=corpus).reindex(columns=columns))
    return typed(pd.concat(frames[1:] or frames, ignore_index=True))


def _read_similarity(path: Path) -> "pd.DataFrame | None":
    import pandas as pd

    try:
        frame = pd.read_csv(path, dtype=dict.fromkeys(("pair", "index", "control"), str))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: no CSV that can be read ({error}); delete it and make it again") from None
    if not set(NEEDED) <= set(frame):
        raise UserError(f"{path}: the columns {', '.join(NEEDED)} are needed; found {list(frame)}")
    absent = {"control": AS_MEASURED} | dict.fromkeys(NUMBERS, math.nan)
    frame = frame.assign(**{name: value for name, value in absent.items() if name not in frame})
    for name in NUMBERS:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        wrong = numbers.isna() & frame[name].notna() if name != "layer" else numbers.isna() | (numbers % 1 != 0)
        if wrong.any():
            place = int(wrong.to_numpy().argmax())
            row = frame.iloc[place].to_dict()
            raise UserError(f"{path}: line {place + 2}: layer and value must be numbers: {row}")
    # A layer whose vectors do not vary has no similarity.
    return frame.replace([math.inf, -math.inf], math.nan).fillna({"control": AS_MEASURED})


def distances(folder: Path, runs: Iterable[Run]) -> "pd.DataFrame":
    """Mean distances of related and unrelated words and how well they separate, with standard errors over the words."""
    import pandas as pd

    from crossalign.analysis.distances import read_panel

    rows = []
    for run in runs:
        for path in sorted((folder / "distances" / run.path()).glob("*.csv")):
            panel = read_panel(path, path.with_suffix(".json"))
            found = {"language": path.stem, "separation": panel.summary["auc"]}
            found["separation_error"] = panel.separation_error()
            for kind in ("related", "unrelated"):
                found |= {kind: panel.mean(kind), f"{kind}_error": panel.error(kind)}
            rows.append(described(run) | found)
    return typed(pd.DataFrame(rows, columns=[name for name in DISTANCES if name != "paper"]))


def write_frames(
    folder: Path, papers: Mapping[str, Iterable[Run]], corpora: Iterable[str], out: Path
) -> dict[str, "pd.DataFrame"]:
    """Write the numbers of the papers' runs to `out` as CSV and Parquet: one row per paper and number."""
    import pandas as pd

    owners = pd.DataFrame(
        [(paper, run.path()) for paper, runs in papers.items() for run in sorted(runs, key=lambda run: run.path())],
        columns=["paper", "address"],
    )
    runs = {run.path(): run for each in papers.values() for run in each}.values()
    tuned = [run for run in runs if isinstance(run, Tuned)]
    frames = {
        "scores": (scores(folder, tuned), SCORES),
        "similarity": (similarity(folder, runs, corpora), SIMILARITY),
        "distances": (distances(folder, runs), DISTANCES),
    }
    made = {}
    for name, (frame, columns) in frames.items():
        made[name] = owners.merge(frame, on="address")[list(columns)]
        with write_atomic(out / f"{name}.csv") as stream:
            made[name].to_csv(stream, index=False, lineterminator="\n")
        with write_atomic(out / f"{name}.parquet", "wb") as stream:
            made[name].to_parquet(stream, index=False)
    return made

"""Similarity by layer of every model of a run, as the page's own drawing needs it: means over seeds, four digits."""

import csv
import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

from crossalign.addresses import Adapted, Base, Run, Tuned, parse
from crossalign.errors import UserError
from crossalign.render import colours, names

COLUMNS = ["pair", "layer", "index", "value"]
CORPORA = {"pud": "PUD sentences", "xnliext": "XNLI extension"}

# (index, pair, layer) -> values over seeds
Values = dict[tuple[str, str, int], list[float]]


def model_label(run: Run) -> str:
    """What a model is called, its seed left out."""
    if isinstance(run, Base):
        return f"{names.model(run.name)}, pretrained"
    if isinstance(run, Adapted):
        return f"{names.model(run.base)} + {run.adaptation}"
    base, plus, adaptation = run.model.partition("+")
    model = names.model(base) + (f" + {adaptation}" if plus else "")
    label = f"{model}, {names.TASKS[run.task]} on {run.source}"
    if run.init == "continual":
        return f"{label}, continual"
    return label if run.init == "ref" else f"{label}, {names.init(run.init)} re-initialised"


def rank(run: Run) -> tuple:
    """Pretrained models first, then unchanged fine-tunings, then the others by layers."""
    layers = [int(part) for part in getattr(run, "init", "").split("-") if part.isdigit()]
    kind = 0 if isinstance(run, Base) else 1 if isinstance(run, Adapted) else 2
    changed = isinstance(run, Tuned) and run.init != "ref"
    return (kind, changed, getattr(run, "recipe", ""), layers, model_label(run))


def read_values(path: Path, into: Values) -> None:
    """Add the values of one file."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = csv.reader(stream)
            if next(rows, None) != COLUMNS:
                raise UserError(f"{path}, line 1: the columns of a similarity file are {', '.join(COLUMNS)}")
            for line, row in enumerate(rows, start=2):
                try:
                    pair, layer, index, value = row
                    into[index, pair, int(layer)].append(float(value))
                except ValueError:
                    raise UserError(f"{path}, line {line}: expected a pair, a layer, an index and a number") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: no CSV that can be read ({error}); delete it and make it again") from None


def pack(values: Values) -> dict[str, dict[str, list[int | None]]]:
    """index -> pair -> ten-thousandths by layer; None where a value is missing or no number."""
    layers: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(dict)
    for (index, pair, layer), found in values.items():
        layers[index, pair][layer] = [value for value in found if math.isfinite(value)]
    packed: dict[str, dict[str, list[int | None]]] = defaultdict(dict)
    for (index, pair), found in sorted(layers.items()):
        seeds = [found.get(layer) for layer in range(max(found) + 1)]
        packed[index][pair] = [round(10_000 * sum(each) / len(each)) if each else None for each in seeds]
    return dict(packed)


def gather_curves(results: Path, known: Collection[Run], preferred: Iterable[str] = ()) -> dict:
    """Everything that the page's layer view draws; `preferred` are the languages that it draws first.

    Files of runs that are not `known` are left from an earlier config, another seed or model, and not shown.
    """
    folder = results / "similarity"
    values: dict[tuple[str, str], Values] = defaultdict(lambda: defaultdict(list))
    runs: dict[str, Run] = {}
    seeds: dict[tuple[str, str], int] = defaultdict(int)
    for path in sorted(folder.rglob("*.csv")):
        address = path.parent.relative_to(folder).as_posix()
        run = parse(address)
        if run not in known:
            continue
        label = model_label(run)
        runs.setdefault(label, run)
        seeds[path.stem, label] += 1
        read_values(path, values[path.stem, label])
    corpora = []
    for corpus in sorted({corpus for corpus, _ in values}):
        labels = sorted((label for name, label in values if name == corpus), key=lambda label: rank(runs[label]))
        models = [
            {"name": label, "seeds": seeds[corpus, label], "curves": pack(values[corpus, label])} for label in labels
        ]
        corpora.append({"name": CORPORA.get(corpus, corpus), "models": models})
    found = {language for corpus in corpora for model in corpus["models"] for language in languages_of(model)}
    return {
        "corpora": corpora,
        "indexes": names.INDEXES,
        "preferred": list(preferred),
        "languages": {
            code: {"name": names.language(code), "colour": colours.language(code).colour} for code in sorted(found)
        },
    }


def languages_of(model: dict) -> set[str]:
    """The languages that English is compared with in one model."""
    return {pair.partition("-")[2] for pairs in model["curves"].values() for pair in pairs}

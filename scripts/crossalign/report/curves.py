"""Similarity by layer of every model of a run, as the page's script draws it: means over seeds, four digits."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

from crossalign.analysis.indexes import LABELS
from crossalign.catalog.addresses import Adapted, Base, Run, Tuned, parse
from crossalign.papers.common import colours
from crossalign.results import names
from crossalign.results.reading import AS_MEASURED, Results

CORPORA = {"pud": "PUD sentences", "xnliext": "XNLI extension"}

# control -> (index, pair) -> layer -> values over seeds
Values = dict[str, dict[tuple[str, str], dict[int, list[float]]]]


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
    return (kind, changed, getattr(run, "preset", ""), layers, model_label(run))


def pack(values: dict[tuple[str, str], dict[int, list[float]]]) -> dict[str, dict[str, list[int | None]]]:
    """index -> pair -> ten-thousandths by layer; None where a layer has no value."""
    packed: dict[str, dict[str, list[int | None]]] = defaultdict(dict)
    for (index, pair), by_layer in sorted(values.items()):
        seeds = [by_layer.get(layer) for layer in range(max(by_layer) + 1)]
        packed[index][pair] = [round(10_000 * sum(each) / len(each)) if each else None for each in seeds]
    return dict(packed)


def model_curves(name: str, seeds: int, values: Values) -> dict:
    """One model: its curves as measured and, where there are any, by control."""
    controls = {control: pack(values[control]) for control in names.CONTROLS if control in values}
    curves = controls.pop(AS_MEASURED, {})
    return {"name": name, "seeds": seeds, "curves": curves} | ({"controls": controls} if controls else {})


def gather_curves(results: Path, known: Collection[Run], preferred: Iterable[str] = ()) -> dict:
    """Everything that the page's layer view draws; `preferred` are the languages that it draws first.

    Files of runs that are not `known` are left from an earlier config, another seed or model, and not shown.
    """
    folder = results / "similarity"
    read = Results(results)
    values: dict[tuple[str, str], Values] = defaultdict(dict)
    runs: dict[str, Run] = {}
    seeds = Counter[tuple[str, str]]()
    for path in sorted(folder.rglob("*.csv")):
        run = parse(path.parent.relative_to(folder).as_posix())
        if run not in known:
            continue
        label = model_label(run)
        runs.setdefault(label, run)
        seeds[path.stem, label] += 1
        for (pair, index, control), layers in (read.similarity(run, path.stem) or {}).items():
            curve = values[path.stem, label].setdefault(control, {}).setdefault((index, pair), {})
            for layer, value in layers.items():
                curve.setdefault(layer, []).append(value)
    corpora = []
    for corpus in sorted({corpus for corpus, _ in values}):
        labels = sorted((label for name, label in values if name == corpus), key=lambda label: rank(runs[label]))
        models = [model_curves(label, seeds[corpus, label], values[corpus, label]) for label in labels]
        corpora.append({"name": CORPORA.get(corpus, corpus), "models": models})
    curves = [pairs for corpus in corpora for model in corpus["models"] for pairs in model["curves"].values()]
    codes = sorted({pair.partition("-")[2] for pairs in curves for pair in pairs})
    return {
        "corpora": corpora,
        "indexes": LABELS,
        "controls": names.CONTROLS,
        "preferred": list(preferred),
        "languages": {code: {"name": names.language(code), "colour": colours.language(code).colour} for code in codes},
    }

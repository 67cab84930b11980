"""A results folder as a finished run leaves it, with made-up numbers: for the tests of what is rendered from one."""

import csv
import json
import math
from pathlib import Path
from random import Random

import yaml

from crossalign.catalog.addresses import Base, Run, Tuned
from crossalign.catalog.layers import merge
from crossalign.catalog.targets import evaluation_sets
from crossalign.papers.all_items import catalog_of
from crossalign.results.reading import set_key

METRICS = {
    "parsing": ("LAS", "UAS"),
    "pos": ("accuracy",),
    "ner": ("F1", "token_F1"),
    "nli": ("accuracy",),
    "qa": ("F1", "EM"),
}
INDEXES = {"pud": ("cka", "cka-rbf"), "xnliext": ("cka", "anc", "matching", "svcca", "pwcca", "cca-ecco", "pwcca-ecco")}
# What controls leave of a similarity.
CONTROLS = {"none": 1.0, "strangers": 0.3, "length": 0.7}
CONTROLLED = ("cka", "anc")
SIMILARITY = ["pair", "layer", "index", "control", "value", "sampling", "lead_sampling"]
LAYERS = {"xlmr-large": 24, "xlmr-xl": 36, "xlmr-xxl": 48, "xglm-564m": 24, "xglm-1.7b": 24}
LAYERS |= {"xglm-2.9b": 48, "xglm-4.5b": 48, "xglm-7.5b": 32}


# The whole studies behind the slides of the talk.
WHOLE_TALK = {
    "profile_languages": [
        "fo",
        "xmf",
        "pcm",
        "gsw",
        "bm",
        "wo",
        "qaf",
        "mt",
        "bxr",
        "mhr",
        "myv",
        "olo",
        "ug",
        "sd",
        "ckb",
    ],
    "transliterated": {"ug": ["parsing", "pos", "ner"], "bxr": ["parsing", "pos"]}
    | dict.fromkeys(("ckb", "xmf", "mhr"), ["ner"]),
    "transliterated_seen": ["ar", "ru", "ja"],
}


def load(root: Path, *names: str, **changes) -> dict:
    """The config of some files, each merged over the one before, with two seeds."""
    config: dict = {}
    for name in names or ("config.yaml",):
        merge(config, yaml.safe_load((root / name).read_text(encoding="utf-8")))
    merge(config, {"seeds": [1, 2]})
    config["align-predict"]["grid"]["seeds"] = {"parsing": 1, "ner": 1, "pos": 2}
    merge(config, changes)
    return config


def make_results(folder: Path, config: dict) -> None:
    """Write every file that the items of `config` read."""
    catalog = catalog_of(config)
    for item in catalog.items:
        needs = catalog.needs(item)
        languages: dict[str, set[str]] = {}
        for data in needs.sets:
            if data.kind == "parallel":
                languages.setdefault(data.name, set()).add(data.split)
            elif data.kind == "text":
                for split, kept in (("train", 950), ("dev", 50)):
                    write_json(folder / f"data/text/{data.name}/{split}.report.json", {"read": 1000, "kept": kept})
                (folder / data.path()).write_text("a sentence\n" * 100_000, encoding="utf-8")
            elif data.kind == "bitext":
                for run in needs.runs:
                    write_distances(folder, run, data.languages[0])
        for run in needs.runs:
            if isinstance(run, Tuned):
                write_scores(folder, config, run)
            for corpus, found in languages.items():
                write_similarity(folder, run, corpus, sorted(found - {"en"}))


def dice(*parts: object) -> Random:
    return Random("/".join(map(str, parts)))


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def write_scores(folder: Path, config: dict, run: Tuned) -> None:
    scores = {}
    for data in evaluation_sets(config, run):
        # Like sets score alike, whatever the model; models and seeds add to that.
        level = 45 + 40 * dice(data.kind, data.name).random()
        level -= 12 * dice(run.model, run.init).random() * (run.init != "ref")
        level += dice(run.path(), data.name).gauss(0, 0.4)
        values = {metric: round(level - 3 * place, 4) for place, metric in enumerate(METRICS[run.task])}
        scores[set_key(data)] = values | {"n": 1000}
    write_json(folder / run.path() / "scores.json", scores)
    write_json(folder / run.path() / "training.json", {"seconds": 600 + 60 * run.seed, "device": "cpu"})


def base_of(run: Run) -> str:
    return run.name if isinstance(run, Base) else getattr(run, "model", "").partition("+")[0]


def write_similarity(folder: Path, run: Run, corpus: str, languages: list[str]) -> None:
    """Curves that rise and fall, and controls of some; pairs that an earlier item wrote are kept."""
    path = folder / "similarity" / run.path() / f"{corpus}.csv"
    rows: dict[tuple, tuple] = {}
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as stream:
            rows = {(*row[:4],): (*row[4:],) for row in csv.reader(stream) if row != SIMILARITY}
    layers = LAYERS.get(base_of(run), 12)
    for lang in languages:
        for index in INDEXES[corpus]:
            draw = dice(run.path(), lang, index)
            height = 0.4 + 0.4 * dice(lang).random() + draw.gauss(0, 0.02)
            for layer in range(layers + 1):
                value = height * math.sin(math.pi * (layer + layers / 3) / (layers * 1.6)) + draw.gauss(0, 0.01)
                for control in CONTROLS if index in CONTROLLED else ("none",):
                    share = f"{min(max(value, 0.01), 0.99) * CONTROLS[control]:.6f}"
                    errors = ("0.01", "0.005") if index in CONTROLLED else ("", "")
                    rows[f"en-{lang}", str(layer), index, control] = (share, *errors)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(SIMILARITY)
        writer.writerows([*key, *values] for key, values in sorted(rows.items()))


def write_distances(folder: Path, run: Run, lang: str) -> None:
    path = folder / "distances" / run.path() / f"{lang}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = dice(run.path(), lang)
    centre = 8 + 6 * draw.random()
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["kind", "left", "right", "count"])
        for kind, middle in (("related", centre), ("unrelated", centre + 6 * draw.random())):
            for place in range(400):
                # Bins of a power-of-two width, as the measuring program writes them; empty ones are left out.
                if count := round(1000 * math.exp(-(((place / 16) - middle) ** 2) / 6)):
                    writer.writerow([kind, place / 16, (place + 1) / 16, count])
    write_json(path.with_suffix(".json"), {"auc": round(0.5 + 0.5 * draw.random(), 4), "pairs": 10000})

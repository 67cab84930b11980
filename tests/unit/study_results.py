"""A study of two made-up models of 12 and 26 layers in 15 languages, with made-up results of two seeds."""

import csv
from pathlib import Path

from tests.unit import made_results
from tests.unit.made_results import dice, load, make_results

from crossalign.analysis.indexes import VARIANCE

INDEXES = ("cka", "cka-standardised", "anc", "matching", "matching-standardised", *VARIANCE)
MODELS = {
    "mbert": {"folder": "resources/demo/models/mbert", "layers": 12, "neurons": 64},
    "deep-model-270m": {"hub": "owner/Deep_Model-270M", "revision": "0" * 40, "layers": 26, "neurons": 640},
}


def study_config(root: Path, **changes) -> dict:
    """The config of `make study`, as its rules see it."""
    languages = ["en", "ar", "de", "es", "fi", "fr", "hi", "id", "it", "ja", "pl", "pt", "ru", "tr", "zh"]
    return load(root, "config.yaml", "config/study.yaml", study={"models": MODELS, "languages": languages} | changes)


def make_study(folder: Path, config: dict, monkeypatch) -> None:
    """Write every file that its items read."""
    monkeypatch.setitem(made_results.INDEXES, "pud", INDEXES)
    for name, entry in config["study"]["models"].items():
        monkeypatch.setitem(made_results.LAYERS, name, entry["layers"])
    make_results(folder, config)
    for name in config["study"]["models"]:
        path = folder / "tokenizers" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as stream:
            rows = csv.writer(stream, lineterminator="\n")
            rows.writerow(("language", "words", "pieces", "unknown", "bytes", "shared"))
            for lang in [*config["study"]["languages"], *config["study"]["unseen"]]:
                draw = dice(name, lang)
                rows.writerow((lang, 1000, 1 + draw.random(), draw.random(), 0, 100 * draw.random()))

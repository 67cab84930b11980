"""A tiny world for tests: all languages and files, few sentences."""

from functools import cache
from pathlib import Path
from typing import Any

from demo_world.settings import load_settings
from demo_world.world import World

SETTINGS = Path(__file__).resolve().parents[2] / "resources" / "demo" / "world.yaml"
SPLITS = {"train": 6, "dev": 3, "test": 4}


def small_override() -> dict[str, Any]:
    """Sizes that make the whole world in seconds."""
    full = load_settings(SETTINGS)
    banks = {
        name: {split: size for split, size in SPLITS.items() if split in spec}
        for name, spec in full["treebanks"].items()
    }
    return {
        "treebanks": banks,
        "pud": {"sentences": 6},
        "wikiann": {
            "large": {**SPLITS, "extra": 2},
            "small": {**SPLITS, "extra": 2},
            "counts": dict.fromkeys(full["wikiann"]["counts"], SPLITS),
        },
        "conll2003": {"train": 12, "dev": 4, "test": 12},
        "nli": {"train": 60, "xnli": {"dev": 4, "test": 5}, "fifteen_way": {"sentences": 5}, "extension": {"rows": 6}},
        "qa": {
            "train": 11,
            "dev": 4,
            "xquad": {"questions": 6},
            "mlqa": {"dev": 2, "test": 4},
            "translated": {"train": 11, "dev": 4},
            "tydiqa": {"dev": 5},
        },
        "bitext": {"pairs": 60},
        "text": {"demo": {"seen": 12, "unseen": 8, "cc100": 15, "narabizi": 6}},
    }


@cache
def small_settings() -> dict[str, Any]:
    """The checked settings of the tiny world."""
    return load_settings(SETTINGS, small_override())


@cache
def full_world() -> World:
    """The demo world itself, for tests that need its lexicons and grammar but not its files."""
    return World(load_settings(SETTINGS))

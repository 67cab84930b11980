"""Base models and vocabularies that this workflow makes itself, as the config says: `own_models`, `own_vocabularies`.

A model of one's own may stand wherever a model of the register may. An entry is the `defaults` and what it changes.
"""

from collections.abc import Iterator

from crossalign.catalog.sets import DataSet

DEFAULTS = "defaults"
TEXTS = ("text", "languages")
SHAPE = ("objective", "norm", "layers", "hidden", "heads", "intermediate", "initializer_range", "dropout")
TRAINING = ("block", "batch", "steps", "learning_rate", "warmup", "weight_decay", "masking", "exponent")
NEEDED = {
    "own_models": ("vocabulary", *TEXTS, *SHAPE, *TRAINING, "seed", "store"),
    "own_vocabularies": ("size", "style", *TEXTS, "lines"),
}


def own_models(config: dict) -> dict[str, dict]:
    """name -> shape, texts and training of every model that is pretrained here."""
    return _entries(config, "own_models")


def own_vocabularies(config: dict) -> dict[str, dict]:
    """name -> size, style and texts of every vocabulary that is made here."""
    return _entries(config, "own_vocabularies")


def _entries(config: dict, key: str) -> dict[str, dict]:
    # A config of an earlier run, of which a page is made again, has none of these keys.
    found = config.get(key) or {}
    common = found.get(DEFAULTS) or {}
    return {name: common | (entry or {}) for name, entry in found.items() if name != DEFAULTS}


def texts_of(entry: dict, split: str = "train") -> list[DataSet]:
    """The texts of a model or of a vocabulary, one per language."""
    return [DataSet("text", f"{entry['text']}_{lang}", split) for lang in entry["languages"]]


def wrong_entries(config: dict, languages: set[str], published: set[str]) -> Iterator[str]:
    """What no schema finds: entries that are not complete, and names that mean something else."""
    models, vocabularies = own_models(config), own_vocabularies(config)
    for key, entries in (("own_models", models), ("own_vocabularies", vocabularies)):
        for name, entry in entries.items():
            for missing in (word for word in NEEDED[key] if word not in entry):
                yield f"{key}.{name}: '{missing}' is given neither here nor in {key}.defaults"
            for lang in entry.get("languages", ()):
                if lang not in languages:
                    yield f"{key}.{name}.languages: unknown language '{lang}'; known are {', '.join(sorted(languages))}"
            if name.startswith("mono-"):
                yield f"{key}.{name}: names that begin with mono- belong to models of one language"
    for name, entry in models.items():
        if "vocabulary" in entry and entry["vocabulary"] not in vocabularies:
            yield f"own_models.{name}.vocabulary: '{entry['vocabulary']}' is not among own_vocabularies"
        if "heads" in entry and "hidden" in entry and entry["hidden"] % entry["heads"]:
            yield f"own_models.{name}: {entry['hidden']} neurons cannot be shared among {entry['heads']} heads"
        if name in published and config["models"] != "hub":
            yield f"own_models.{name}: a model of this name lies in the folder of `models` already"

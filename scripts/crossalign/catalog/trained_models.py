"""Vocabularies and models that this workflow trains: the section `pretrain` of the config.

A trained model may stand wherever a model of the register may. An entry is the `defaults` and what it changes.
`mono-*` describes models of one language each (`talk`): `mono-wo` learns the text of Wolof.
A model with `stages` is trained several times, each time from the weights of the time before: `small.stage1`,
`small.stage2`, and last `small` are entries of their own, the later ones with `init`. `mono-wo.stage1` likewise.
"""

from collections.abc import Iterator

from crossalign.catalog.sets import DataSet

DEFAULTS = "defaults"
MONO = "mono-*"
NEEDED = {
    "models": (
        *("vocabulary", "text", "languages", "objective", "norm", "layers", "hidden", "heads", "intermediate"),
        *("initializer_range", "dropout", "block", "batch", "learning_rate", "warmup", "weight_decay", "masking"),
        *("exponent", "epsilon", "seed", "store"),
    ),
    "vocabularies": ("size", "style", "text", "languages"),
}


def trained_models(config: dict) -> dict[str, dict]:
    """name -> shape, texts and training of every model that is pretrained here, but for those of one language."""
    public = (config.get("anc") or {}).get("norm_models") == "public"
    entries = _entries(config, "models").items()
    return {
        name: entry for name, entry in entries if not (name.startswith(MONO) or public and entry.get("as_published"))
    }


def trained_model(config: dict, name: str) -> dict | None:
    """The entry of a model; None if it is not trained here."""
    return _of_one_language(config, "models", name) if name.startswith("mono-") else trained_models(config).get(name)


def trained_vocabularies(config: dict) -> dict[str, dict]:
    """name -> size, style and texts of every vocabulary that is made here, but for those of one language."""
    return {name: entry for name, entry in _entries(config, "vocabularies").items() if name != MONO}


def trained_vocabulary(config: dict, name: str) -> dict | None:
    """The entry of a vocabulary; None if it is that of a published model."""
    if name.startswith("mono-"):
        return _of_one_language(config, "vocabularies", name)
    return trained_vocabularies(config).get(name)


def stand_ins(config: dict) -> set[str]:
    """The models that are not those of a paper: trained here, or the base model of a study."""
    trained = {name for name, entry in trained_models(config).items() if not entry.get("as_published")}
    return trained | ((config.get("study") or {}).get("models") or {}).keys() - {"mbert"}


def _entries(config: dict, kind: str) -> dict[str, dict]:
    # A config of an earlier run, of which a page is made again, lacks the section.
    found = (config.get("pretrain") or {}).get(kind) or {}
    common = found.get(DEFAULTS) or {}
    whole = {name: common | (entry or {}) for name, entry in found.items() if name != DEFAULTS}
    return dict(stage for name, entry in whole.items() for stage in _stages(name, entry))


def _stages(name: str, entry: dict) -> Iterator[tuple[str, dict]]:
    """The trainings of a model, one after another: the entry without `stages`, then what each stage changes."""
    changes = [{}, *(entry.get("stages") or ())]
    entry = {key: value for key, value in entry.items() if key != "stages"}
    for number, change in enumerate(changes, 1):
        # Another seed, lest a stage on the same text read it in the same order.
        entry = entry | {"seed": entry.get("seed", 1) + 1000 * (number > 1)} | change
        yield name if number == len(changes) else f"{name}.stage{number}", entry
        entry = entry | {"init": f"{name}.stage{number}"}


def _of_one_language(config: dict, kind: str, name: str) -> dict:
    language, stage, number = name.removeprefix("mono-").partition(".stage")
    text = language.replace(".", "+")
    source = config["talk"]["text"].get(text.partition("+")[0], "wikipedia")
    entry = _entries(config, kind)[f"{MONO}{stage}{number}"] | {"text": source, "languages": [text]}
    named = {key: entry[key].replace("*", language) for key in ("vocabulary", "init") if MONO in entry.get(key, "")}
    return entry | named


def texts_of(entry: dict | None, split: str = "train") -> list[DataSet]:
    """The texts of a model or of a vocabulary, by language; of several sources one after another."""
    if not entry:
        return []
    sources = [entry["text"]] if isinstance(entry["text"], str) else entry["text"]
    return [DataSet("text", f"{source}_{lang}", split) for lang in entry["languages"] for source in sources]


def wrong_entries(config: dict, languages: set[str], published: set[str]) -> Iterator[str]:
    """What the keys alone do not show: entries that are not complete, and names that mean something else."""
    models, vocabularies = _entries(config, "models"), _entries(config, "vocabularies")
    for kind, entries in (("models", models), ("vocabularies", vocabularies)):
        for name, entry in entries.items():
            place = f"pretrain.{kind}.{name}"
            told = ("text", "languages") if name.startswith(MONO) else ()
            for missing in (word for word in NEEDED[kind] if entry.get(word) is None and word not in told):
                yield f"{place}: '{missing}' is given neither here nor in pretrain.{kind}.defaults"
            for lang in entry.get("languages", ()):
                if lang not in languages:
                    yield f"{place}.languages: unknown language '{lang}'; known are {', '.join(sorted(languages))}"
            if name.startswith("mono-") and not name.startswith(MONO):
                yield f"{place}: names that begin with mono- belong to models of one language, which {MONO} describes"
    for name, entry in models.items():
        place = f"pretrain.models.{name}"
        if (entry.get("steps") is None) == (entry.get("epochs") is None):
            yield f"{place}: either 'steps' or 'epochs' must be given, here or in pretrain.models.defaults"
        if entry.get("vocabulary") not in {None, *vocabularies, *published}:
            yield f"{place}.vocabulary: '{entry['vocabulary']}' is not among pretrain.vocabularies and published models"
        if "heads" in entry and "hidden" in entry and entry["hidden"] % entry["heads"]:
            yield f"{place}: {entry['hidden']} neurons cannot be shared among {entry['heads']} heads"
    yield from _wrong_choices(config, models, published)


def _wrong_choices(config: dict, models: dict[str, dict], published: set[str]) -> Iterator[str]:
    """Models that `anc` wants to be pretrained and cannot have, and models that are there already."""
    anc = config["anc"]
    schemes = [*anc["schemes"], anc["second_normformer"]] if anc["norm_models"] == "pretrain" else []
    for name in schemes:
        if name not in models:
            yield f"anc.norm_models: '{name}' cannot be pretrained, as it is not among pretrain.models"
        for lang in anc["norm_languages"] if "languages" in models.get(name, ()) else ():
            if lang not in models[name]["languages"]:
                yield f"anc.norm_languages: '{lang}' is not among pretrain.models.{name}.languages"
    for name in trained_models(config):
        if name in published and name not in schemes and config["models"] not in ("hub", "package"):
            yield f"pretrain.models.{name}: a model of this name lies in the folder of `models` already"


def is_long(config: dict, name: str) -> bool:
    """Whether a training sees billions of tokens, as those of `anc` do."""
    entry = trained_model(config, name)
    return (entry.get("steps") or 0) * entry["batch"] * entry["block"] > 10**10

"""The models of a study (`study.models` of the config): where they lie, how deep they are, which layers are drawn anew.

An entry names a `folder`, or a repository of the `hub` at a `revision`. Without either it is the model of that name in
resources/models.tsv or in `pretrain.models`.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from crossalign.catalog.trained_models import trained_model, trained_models
from crossalign.fetch.register import Model, read_models, read_packages

ROOT = Path(__file__).resolve().parents[3]
HUB = "hub"
# Where `models` of the config says so, what is in a package comes from there, and all else from the hub.
PACKAGE = "package"
# Of the names that model families give to the same thing.
LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
NEURONS = ("hidden_size", "d_model", "n_embd", "dim")
QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")


def study(config: dict) -> dict:
    """The section of the config; a run that is no study may lack it."""
    return config.get("study") or {}


def studied(config: dict) -> dict[str, dict]:
    """name -> entry of every model of the study."""
    return study(config).get("models") or {}


def place_of(config: dict, name: str) -> str:
    """The folder of a model that is not made here, as the config has it; `hub` where it is fetched."""
    entry = studied(config).get(name, {})
    if entry.get("folder"):
        return entry["folder"]
    return HUB if entry.get("hub") or config["models"] in (HUB, PACKAGE) else f"{config['models']}/{name}"


def model_folder(config: dict, name: str) -> Path:
    """Where the files of a base model lie. Folders of the config are the repository's, wherever a run is started."""
    if trained_model(config, name):
        return Path("results", config["run"], "models", name)
    place = place_of(config, name)
    return Path(config["downloads"]["folder"], "models", name) if place == HUB else ROOT / place


def backend_of(config: dict, name: str) -> str:
    """What computes a model: `auto`, `own` or `library`; what is made from a model is computed as the model is."""
    return (config.get("backends") or {}).get(name.partition("+")[0], config["backend"])


@cache
def registered() -> dict[str, Model]:
    """The register of models, with the packages that hold some of them."""
    files = read_packages(ROOT / "resources" / "packages.tsv")
    rows = read_models(ROOT / "resources" / "models.tsv")
    return {
        name: replace(row, packages=tuple(file.address for file in files.get(name, ()))) for name, row in rows.items()
    }


@cache
def _from_packages() -> dict[str, Model]:
    """The models that packages hold, as if there were no other place; `bytes` is what pip fetches."""
    files = read_packages(ROOT / "resources" / "packages.tsv")
    wheels = {name: {each.wheel: each.bytes or 0 for each in group} for name, group in files.items()}
    return {
        name: replace(registered()[name], hub="", revision="", bytes=sum(sizes.values()))
        for name, sizes in wheels.items()
    }


def known_models(config: dict) -> dict[str, Model]:
    """The register's rows, and one for each model of the study that is fetched."""
    rows = {
        name: Model(name, entry["hub"], entry["revision"], None, entry.get("licence", "not-stated"), "", None,
                    entry.get("layers"), entry.get("neurons"), "", "study")
        for name, entry in studied(config).items()
        if entry.get("hub")
    }  # fmt: skip
    return registered() | (_from_packages() if config["models"] == PACKAGE else {}) | rows


def read_shape(folder: str | Path) -> dict[str, int]:
    """`layers` and `neurons` of a model folder by its config.json, as far as it can be read and tells them."""
    try:
        settings = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    # A model of texts and pictures describes its texts apart.
    settings |= settings.get("text_config") or {}
    numbers = {
        kind: next((settings[key] for key in keys if isinstance(settings.get(key), int)), None)
        for kind, keys in (("layers", LAYERS), ("neurons", NEURONS))
    }
    return {kind: number for kind, number in numbers.items() if number is not None}


def shape_of(config: dict, name: str) -> dict[str, int]:
    """`layers` and `neurons` of a model, as far as they are known before it is fetched or made."""
    if made := trained_model(config, name):
        return {"layers": made["layers"], "neurons": made["hidden"]}
    entry = studied(config).get(name, {})
    found = {kind: entry[kind] for kind in ("layers", "neurons") if entry.get(kind)}
    if len(found) < 2 and place_of(config, name) != HUB:
        found = read_shape(model_folder(config, name)) | found
    elif row := known_models(config).get(name):
        found = {kind: getattr(row, kind) for kind in ("layers", "neurons") if getattr(row, kind)} | found
    return found


def layer_sets(config: dict, name: str) -> dict[str, str]:
    """The sets of layers that are drawn anew in a model, from low to high: what a set is called -> its layers, `1-3`.

    Quarters are as even as can be; a model of fewer than four layers has one set per layer.
    """
    depth = shape_of(config, name)["layers"]
    if study(config)["layer_sets"] == "pairs":
        sets = [_span(first, min(first + 1, depth)) for first in range(1, depth + 1, 2)]
        return {f"layers {layers}" if "-" in layers else f"layer {layers}": layers for layers in sets}
    ends = [round(quarter * depth / 4) for quarter in range(5)]
    spans = [(low + 1, high) for low, high in zip(ends, ends[1:], strict=False)]
    return {label: _span(*span) for label, span in zip(QUARTERS, spans, strict=True) if span[0] <= span[1]}


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def model_name(source: str) -> str:
    """What a folder or a repository is called in addresses: its last part in small letters, other signs as dashes."""
    return re.sub(r"-+", "-", re.sub(r"[^a-z0-9._]+", "-", Path(source).name.lower())).strip("-._")


def is_taken(config: dict, name: str) -> bool:
    """Whether a name belongs to a model that is trained here: such a model is used whatever a folder holds."""
    return name == "bilstm" or name.startswith("mono-") or name in trained_models(config)


def wrong_models(config: dict) -> Iterator[str]:
    """What the keys of `study` alone do not show."""
    known = {*registered(), *trained_models(config)}
    for name in config.get("backends") or {}:
        if name not in known | studied(config).keys():
            yield f"backends.{name}: no model of that name is registered, pretrained or studied"
    for name, entry in studied(config).items():
        place, folder, hub = f"study.models.{name}", entry.get("folder"), entry.get("hub")
        if (folder or hub) and is_taken(config, name):
            yield f"{place}: '{name}' means a model that is trained here; choose another name"
        elif folder and hub:
            yield f"{place}: 'folder' and 'hub' cannot both be given"
        elif hub and not entry.get("revision"):
            yield f"{place}: 'revision' is missing; write the commit, or let make study MODEL={hub} find it"
        elif not folder and not hub and name not in known:
            yield f"{place}: neither 'folder' nor 'hub' is given, and no model is registered or pretrained by that name"
        elif folder and not (ROOT / folder / "config.json").is_file():
            yield f"{place}.folder: {folder} has no config.json"
        elif "layers" not in shape_of(config, name):
            yield f"{place}: 'layers' is missing, and nothing else tells how deep the model is"
    yield from _wrong_languages(config)


def ner_sets(config: dict) -> tuple[str, list[str] | None]:
    """The family of the sets of named entities, and its languages where `datasets` describes it."""
    family = study(config).get("ner", "wikiann")
    entry = (config.get("datasets") or {}).get(family)
    return family, list(entry["languages"]) if entry else None


def _wrong_ner_sets(config: dict) -> Iterator[str]:
    family, languages = ner_sets(config)
    if languages is None and family != "wikiann":
        yield f"study.ner: '{family}' is neither wikiann nor an entry of `datasets`"
    elif languages is not None and config["datasets"][family]["task"] != "ner":
        yield f"study.ner: '{family}' of `datasets` has the task {config['datasets'][family]['task']}"
    elif languages is not None and (
        lacking := [la for la in ["en", *study(config)["adjusted_languages"]] if la not in languages]
    ):
        yield f"study.ner: '{family}' of `datasets` lacks the language '{lacking[0]}'"


def _wrong_languages(config: dict) -> Iterator[str]:
    section, talk = study(config), config["talk"]
    if section:
        yield from _wrong_ner_sets(config)
    if section and "en" not in section["languages"]:
        yield "study.languages: 'en' is missing, the language that models are fine-tuned in"
    for lang in section.get("unseen", ()):
        if lang in section["languages"]:
            yield f"study.unseen: '{lang}' stands among study.languages too; one of the two must go"
        elif lang not in talk["treebanks"]:
            yield f"study.unseen: '{lang}' has no treebank in talk.treebanks"


def targets(config: dict, task: str) -> dict[str, list[str]]:
    """The languages that a task is tested in: the `source`, the `seen` ones with parallel sentences, the `unseen`."""
    section = study(config)
    seen, unseen = [lang for lang in section["languages"] if lang != "en"], section["unseen"]
    if task == "ner":
        languages = ner_sets(config)[1]
        unseen = [lang for lang in unseen if lang in (config["talk"]["ner"] if languages is None else languages)]
        seen = [lang for lang in seen if languages is None or lang in languages]
    return {"source": ["en"], "seen": seen, "unseen": unseen}


def flat(groups: dict[str, Iterable[str]]) -> list[str]:
    return [lang for languages in groups.values() for lang in languages]

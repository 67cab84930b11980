"""The demo's own language models: from resources/demo/models.yaml to settings, and both stages of their training.

Most steps see short blocks, the last ones long blocks. tools/make_demo_models.py makes all of them from the demo
world; the plan is read here.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from crossalign.data.lines import Source
from crossalign.data.report import Report
from crossalign.data.text import Cleaning, clean_sentences, read_articles, read_lines
from crossalign.engine.encoder import Encoder
from crossalign.engine.hyperparameters import folder_identity
from crossalign.engine.pretrain_job import Job, Start, pretrain, starting_point
from crossalign.engine.pretrain_settings import PretrainSettings
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import sha256, write_atomic, write_json

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

# Standard deviation of the noise on copied positions, relative to theirs.
_NOISE = 0.25
# A model whose loss stays within this of what word frequencies give has learnt little else.
_PLATEAU = 0.5
# How often the learning rate is halved for a model that stays there.
_HALVED = 2


def read_plan(models: Path, world: Path) -> dict[str, Any]:
    """models.yaml with `texts` as lists of kind/language, and `world`: the seed and the checksum of its settings."""
    import yaml

    plan = yaml.safe_load(models.read_text(encoding="utf-8"))
    settings = yaml.safe_load(world.read_text(encoding="utf-8"))
    plan["texts"] = {name: _files(kinds, settings["seen"]) for name, kinds in plan["texts"].items()}
    plan["world"] = {"seed": settings["seed"], "sha256": text_identity(settings)}
    for name, model in plan["models"].items():
        needs = {"texts": "texts", **({"init": "models"} if "init" in model else {"tokenizer": "tokenizers"})}
        for key, where in needs.items():
            if model.get(key) not in plan[where]:
                raise UserError(f"{models}: models: {name}: {key} '{model.get(key)}' is not under {where}")
    return plan


# Sections of the world's settings that its running text does not depend on: they may change without new models.
_OTHER_SETS = {"treebanks", "pud", "wikiann", "conll2003", "nli", "qa", "bitext"}


def text_identity(settings: dict[str, Any]) -> str:
    """A checksum of all settings that the running text of a world depends on."""
    parts = {name: value for name, value in settings.items() if name not in _OTHER_SETS}
    parts["text"] = {name: value for name, value in parts.get("text", {}).items() if name != "demo"}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _files(kinds: dict[str, Any], seen: list[str]) -> list[str]:
    return [f"{kind}/{lang}" for kind, langs in kinds.items() for lang in (seen if langs == "seen" else langs)]


def chosen_models(plan: dict[str, Any], names: list[str] | None) -> list[str]:
    """The named models (None: all) and those that they go on from, each after the one that it needs."""
    for name in names or ():
        if name not in plan["models"]:
            raise UserError(f"--models {name}: not one of {', '.join(plan['models'])}")
    order: dict[str, None] = {}

    def put(name: str) -> None:
        if "init" in plan["models"][name]:
            put(plan["models"][name]["init"])
        order.setdefault(name)

    for name in names or plan["models"]:
        put(name)
    return list(order)


def vocabulary_of(plan: dict[str, Any], name: str) -> str:
    """The tokenizer of a model: its own, or that of the model it goes on from."""
    model = plan["models"][name]
    return vocabulary_of(plan, model["init"]) if "init" in model else model["tokenizer"]


def short_settings(plan: dict, model: dict, precision: str, factor: float = 1.0, **changes: Any) -> PretrainSettings:
    """Settings of the short blocks of a model (an entry of the plan), its steps times `factor`."""
    values = {**plan["defaults"]["training"], **model.get("training", {}), **changes}
    # The plan has the name that the provenance of the tracked models compares with it.
    values["epsilon"] = values.pop("eps", PretrainSettings.epsilon)
    return PretrainSettings(**{**values, "steps": max(3, round(values["steps"] * factor))}, precision=precision)


def long_settings(plan: dict, model: dict, short: PretrainSettings) -> PretrainSettings:
    """Settings of the long blocks at the end."""
    values = {**plan["defaults"]["long"], **model.get("long", {})}
    share = values.pop("share")
    values.pop("copy_positions")
    return replace(short, **values, steps=max(3, round(short.steps * share)), seed=short.seed + 1000)


def begin(plan: dict, model: dict, tokenizer: Path, models: Path, seed: int, **shape: Any) -> Start:
    """What a model starts from; `models` is the folder of those that others go on from."""
    shape = {**plan["defaults"]["shape"], **model.get("shape", {}), **shape}
    dropout = shape.pop("dropout")
    if "init" in model:
        start = starting_point(models / model["init"], None, "post", None, {}, seed)
    else:
        start = starting_point(None, tokenizer, model["norm"], model.get("family"), shape, seed)
    set_dropout(start.encoder, dropout)
    return start


def set_dropout(encoder: Encoder, value: float) -> None:
    """What config.json will say."""
    encoder.config = replace(encoder.config, hidden_dropout=value, attention_dropout=value)
    for layer in encoder.layers:
        layer.config = encoder.config


def copy_positions(encoder: Encoder, block: int, seed: int) -> None:
    """Let the positions beyond `block` begin as those before it, over and over, with a little noise."""
    table, first = encoder.embeddings.position.weight.data, encoder.config.position_offset
    known = table[first : first + block]
    noise = torch.randn(table.shape, generator=torch.Generator().manual_seed(seed)).to(table) * _NOISE * known.std()
    for place in range(first + block, len(table)):
        table[place] = known[(place - first) % block] + noise[place]


def stuck(report: dict) -> bool:
    """Whether a model learnt little more than word frequencies."""
    return report["loss"][-1][1] > report["unigram_entropy"] - _PLATEAU


def train_model(
    plan: dict,
    name: str,
    texts: dict[str, list[Path]],
    tokenizer: Path,
    models: Path,
    work: Path,
    device: torch.device,
    precision: str,
    recipe: str = "",
    factor: float = 1.0,
    shrink: Callable[[PretrainSettings], PretrainSettings] = lambda settings: settings,
) -> list[dict]:
    """Both stages of one model, into models/name; gives their reports. Goes on from a checkpoint in `work`.

    A model that is `stuck` after the first stage is trained again with half the learning rate. `shrink` changes the
    settings of both stages, for trials.
    """
    model = plan["models"][name]
    short = shrink(short_settings(plan, model, precision, factor))
    for _ in range(_HALVED + 1):
        first = _short_stage(plan, name, texts, tokenizer, models, work, device, recipe, short)
        if not stuck(first) or short.steps < 100:
            break
        log.warning("%s: the loss stayed at word frequencies with a rate of %g", name, short.learning_rate)
        short = replace(short, learning_rate=short.learning_rate / 2)
    long = shrink(long_settings(plan, model, short))
    place = work / f"{name}-short"
    start = starting_point(place, None, "post", None, {}, long.seed)
    # Segments that no text had are made even at the end of a model that began from nothing.
    start.fresh, start.identity = "init" not in model, folder_identity(place)
    if {**plan["defaults"]["long"], **model.get("long", {})}["copy_positions"]:
        copy_positions(start.encoder, short.block, long.seed)
    job = Job(texts, long, models / name, work / "tokens", work / "checkpoints" / f"{name}-long", recipe, "bf16")
    reports = [first, pretrain(start, job, device)]
    write_json(models / name / "training.json", {"stages": reports}, indent=1)
    return reports


def _short_stage(plan, name, texts, tokenizer, models, work, device, recipe, settings) -> dict:
    """The first stage, unless it is there already. Between the stages nothing is rounded."""
    place = work / f"{name}-short"
    about = [recipe, vars(settings), plan["models"][name]]
    if "init" in plan["models"][name]:
        # Another model to go on from makes another model.
        about.append(folder_identity(models / plan["models"][name]["init"]))
    wanted = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    stamp = place / "finished.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return json.loads((place / "training.json").read_text(encoding="utf-8"))
    start = begin(plan, plan["models"][name], tokenizer, models, settings.seed)
    job = Job(texts, settings, place, work / "tokens", work / "checkpoints" / f"{name}-short", recipe)
    report = pretrain(start, job, device)
    with write_atomic(stamp) as stream:
        stream.write(wanted)
    return report


# --- the text they are trained on: the demo world's, cleaned as the workflow cleans it

# Where the world keeps its text.
TEXT = ("text/wikipedia/", "text/cc100/")


def clean_text(world: Path, name: str, most: int = 0) -> Iterator[str]:
    """The sentences of one text (kind/language) of the world, at most `most` (0: all)."""
    source = world / "text" / (name + (".parquet" if name.startswith("wikipedia/") else ".txt.xz"))
    report = Report()
    raw = read_articles(source, report) if source.suffix == ".parquet" else read_lines(Source(source).lines(), report)
    yield from clean_sentences(raw, Cleaning(max_sentences=most), report)


def text_file(folder: Path, name: str) -> Path:
    """Where a cleaned text lies."""
    return folder / f"{name.replace('/', '-')}.txt"


def write_texts(world: Path, names: list[str], folder: Path, most: int = 0) -> None:
    """Clean the texts that are not in the folder yet."""
    for name in names:
        target = text_file(folder, name)
        if not target.exists():
            with write_atomic(target) as stream:
                stream.writelines(f"{sentence}\n" for sentence in clean_text(world, name, most))


def by_language(folder: Path, names: list[str]) -> dict[str, list[Path]]:
    """The files of each language."""
    files: dict[str, list[Path]] = {}
    for name in names:
        files.setdefault(name.split("/")[1], []).append(text_file(folder, name))
    return files


# --- how a model was made: provenance.json beside its weights


def stage(report: dict[str, Any]) -> dict[str, Any]:
    """One stage of training: what was set, and how it went."""
    curve = report["loss"]
    return {
        "settings": report["settings"],
        "loss": {"first": curve[0], "last": curve[-1], "frequencies_alone": report["unigram_entropy"]},
        "tokens_seen": report["tokens_seen"],
        "seconds": report["seconds"],
        "device": report["device"],
        "versions": report["versions"],
    }


def asked(plan: dict[str, Any], name: str) -> dict[str, Any]:
    """What decides a model: the plan's entries, those of the model that it goes on from, and the world."""
    model, vocabulary = plan["models"][name], vocabulary_of(plan, name)
    found = {
        "recipe": {"file": "resources/demo/models.yaml", "entry": model, "defaults": plan["defaults"]},
        "world": plan["world"],
        "texts": {"name": model["texts"], "files": plan["texts"][model["texts"]]},
        "tokenizer": {"name": vocabulary, "settings": plan["tokenizers"][vocabulary]},
    }
    if plan.get("trial"):
        # Fewer sentences or steps than planned: never taken for the model itself.
        found["trial"] = plan["trial"]
    if "init" in model:
        found["init"] = asked(plan, model["init"])
    return found


def describe(folder: Path, name: str, plan: dict[str, Any]) -> dict[str, Any]:
    """The contents of provenance.json."""
    reports = json.loads((folder / "training.json").read_text(encoding="utf-8"))["stages"]
    found = asked(plan, name)
    found["texts"]["tokens"] = {lang: values["tokens"] for lang, values in reports[0]["texts"].items()}
    found["tokenizer"]["sha256"] = sha256(folder / "tokenizer.json")
    return {
        "model": name,
        **found,
        "parameters": reports[0]["parameters"],
        "stages": [stage(report) for report in reports],
        "sha256": {"model.safetensors": sha256(folder / "model.safetensors")},
    }


def write_provenance(folder: Path, name: str, plan: dict[str, Any], command: str) -> None:
    """Write provenance.json into a finished model folder, as its last file."""
    content = {**describe(folder, name, plan), "command": command}
    write_json(folder / "provenance.json", content, indent=1, ensure_ascii=False)


def finished(folder: Path, name: str, plan: dict[str, Any]) -> bool:
    """Whether the folder holds this model, made as the plan says, with the weights that it was finished with."""
    try:
        found = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
        weights = sha256(folder / "model.safetensors")
    except (OSError, ValueError):
        return False
    wanted = asked(plan, name)
    same = all(found.get(key) == wanted.get(key) for key in ("recipe", "world", "trial"))
    # These also say what came of it: numbers of tokens, a checksum.
    same = same and all(
        found.get(key, {}).get(part) == value for key in ("texts", "tokenizer") for part, value in wanted[key].items()
    )
    return same and found.get("sha256", {}).get("model.safetensors") == weights

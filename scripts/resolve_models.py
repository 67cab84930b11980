r"""Put a model in mBERT's place: find it before its study is planned, and write all settings of the run.

A model is a folder, or a repository of the Hugging Face hub (owner/name, perhaps with @revision), or a name of
resources/models.tsv or `pretrain.models`. Of a repository only config.json is fetched. Out: for each model a config
file to be merged over config.yaml, results/<model>/models.yaml, whose name is printed. What cannot be studied is
refused.

Example:
    python scripts/resolve_models.py e5-small resources/demo/models/mbert --languages en de
"""

import argparse
import os
import re
from argparse import Namespace
from pathlib import Path

import yaml

from crossalign.catalog.config import ROOT, merged
from crossalign.catalog.layers import bases, merge, read
from crossalign.catalog.studied import backend_of, is_taken, model_name, registered, shape_of
from crossalign.catalog.trained_models import trained_models
from crossalign.fetch.models import look_at
from crossalign.fetch.retry import RetryPolicy
from crossalign.fetch.sources import Mirror, Settings
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic

REPOSITORY = re.compile(r"(?P<hub>[\w.-]+/[\w.-]+)(@(?P<revision>\S+))?")
# What a config file is laid over that extends none.
STUDY = ROOT / "config" / "study.yaml"
# The layers of the models that the papers' sets of layers are of.
PAPERS_DEPTH = 12


def parse_args() -> Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a folder, owner/name[@revision] or a known name")
    parser.add_argument(
        "--configs", nargs="*", type=Path, default=[], metavar="FILE",
        help="config files of the study; they are laid over config/study.yaml, or what they extend",
    )  # fmt: skip
    parser.add_argument("--run", help="the name of the run; default: the model's")
    parser.add_argument("--languages", nargs="+", metavar="LANG", help="of align-predict; English comes along")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED")
    parser.add_argument(
        "--mirror", type=Path, metavar="FOLDER", help="read data from here, as tools/make_mirror.py lays out"
    )
    return parser.parse_args()


def resolved(source: str, config: dict) -> tuple[str, dict]:
    """Name and entry of one model."""
    folder = Path(source)
    if folder.is_dir():
        names = [file.name for file in folder.iterdir()]
        # Relative where it can be: a project that moves keeps its results.
        place = source if folder.is_absolute() else os.path.relpath(folder.resolve(), ROOT)
        name = free_name(config, source, str(folder.resolve()))
        return name, {"folder": place} | shape(source, folder, names, backend_of(config, name))
    if source in {**registered(), **trained_models(config)}:
        return source, {}
    if not (found := REPOSITORY.fullmatch(source)):
        raise UserError(f"MODEL {source}: no such folder, and no repository of the hub, which is owner/name")
    name = free_name(config, source, found["hub"], found["hub"].replace("/", "-"))
    downloads = config["downloads"]
    mirror = downloads["mirror"] and Mirror(downloads["mirror"], downloads["mirror_checksums"] == "mirror")
    place = Settings(
        Path(downloads["folder"]), Path(downloads["lock"]), mirror or None, downloads["offline"],
        RetryPolicy(attempts=downloads["attempts"]),
    )  # fmt: skip
    commit, names = look_at(name, found["hub"], found["revision"] or "main", place)
    entry = {"hub": found["hub"], "revision": commit}
    return name, entry | shape(source, place.downloads / "models" / name, names, backend_of(config, name))


def free_name(config: dict, source: str, *choices: str) -> str:
    """The model name made of the first of some choices that no model trained here has."""
    names = [name for choice in choices if (name := model_name(choice))]
    if not names:
        raise UserError(
            f"MODEL {source}: a model is named after its folder, by the letters a-z and digits, and there are none; "
            "rename the folder"
        )
    for name in names:
        if not is_taken(config, name):
            return name
    raise UserError(f"MODEL {source}: '{names[0]}' means a model that is trained here; rename the folder")


def shape(source: str, folder: Path, names: list[str], backend: str) -> dict:
    """Layers and neurons of a model that can be studied; refuses others."""
    from crossalign.engine.folders import load_config

    config = load_config(folder, backend)
    if not {"tokenizer.json", "vocab.txt"}.intersection(names):
        raise UserError(f"MODEL {source}: it has no fast tokenizer (tokenizer.json)")
    return {"layers": config.layers, "neurons": config.hidden}


def settings(files: list[Path]) -> dict:
    """What the config files say beyond config.yaml, those that they extend included."""
    told = [read(file) for file in files]
    under = bases(files) if any("extends" in each for each in told) else [STUDY]
    found: dict = {}
    for each in [*map(read, under), *told]:
        merge(found, each)
    found.pop("extends", None)
    return found


def in_place_of_mbert(name: str, entry: dict, config: dict) -> dict:
    """The settings that name a model wherever the papers have mBERT, and what follows from its depth and its texts."""
    section, talk = config.get("study") or {}, config["talk"]
    beside = [other for other in section.get("beside") or () if other != name]
    changes = {
        "study": {"models": {name: entry}},
        "align-predict": {"base": name},
        # Of the schemes of normalisation there is the model's alone.
        "anc": {"known_models": [name, *beside], "schemes": [name]},
        "adjust": {"base": name, "extended": {"base": name}},
        "talk": {"base": name},
    }
    config = config | {"study": section | changes["study"]}
    if not (depth := shape_of(config, name).get("layers")):
        raise UserError(f"MODEL {name}: nothing tells how many layers it has; name its folder, or owner/name")
    if depth != PAPERS_DEPTH:
        sets = {key: rescaled(config["align-predict"][key], depth) for key in ("layer_pairs", "layer_sets")}
        changes["align-predict"] |= sets
    has_read = (section.get("read_languages") or {}).get(name, ())
    if left_out := [lang for lang in talk["languages"] if lang in has_read]:
        kept = {key: [lang for lang in talk[key] if lang not in has_read] for key in ("languages", "profile_languages")}
        changes["talk"] |= kept | {"read_languages": left_out}
        if not all(kept.values()):
            raise UserError(f"study.read_languages.{name}: the model has read all of talk.profile_languages")
        if not set(talk["transliterated"]).intersection(kept["profile_languages"]) and not talk["transliterated_seen"]:
            told = "no language in another script is left: the model has read " + ", ".join(left_out)
            changes["skip"] = {"talk/figure3": told}
    return changes


def rescaled(sets: list[str], depth: int) -> list[str]:
    """The papers' sets of layers, which are of twelve, in a model of another depth: `11-12` of 24 are `21-24`."""
    found = []
    for layers in sets:
        first, _, last = layers.partition("-")
        if layers != "all":
            low, high = (round(int(end) * depth / PAPERS_DEPTH) for end in (int(first) - 1, last or first))
            layers = "" if low == high else f"{low + 1}-{high}" if low + 1 < high else str(high)
        found.append(layers)
    return list(dict.fromkeys(filter(None, found)))


def narrowed(config: dict, languages: list[str]) -> dict:
    """`align-predict` in some languages and English."""
    paper, wanted = config["align-predict"], ["en", *languages]
    found: dict = {"languages": list(dict.fromkeys(wanted))}
    for key in ("sources", "extra_targets", "similarity_languages"):
        found[key] = [lang for lang in paper[key] if lang in wanted]
    found["similarity_languages"] = found["similarity_languages"] or [lang for lang in languages if lang != "en"]
    return {"align-predict": found}


def run_settings(source: str, args: Namespace) -> dict:
    """All settings of the run of one model beyond config.yaml."""
    found, config = settings(args.configs), merged([])
    # Not checked: it has no model yet.
    merge(config, found)
    if args.mirror:
        merge(found, {"downloads": {"mirror": f"file://{args.mirror.resolve()}", "mirror_checksums": "mirror"}})
    if args.seeds:
        merge(found, {"seeds": args.seeds, "anc": {"seeds": args.seeds}})
    if args.languages:
        merge(found, narrowed(config, args.languages))
    # A model that the mirror of data does not have comes from the hub.
    name, entry = resolved(source, config)
    merge(found, in_place_of_mbert(name, entry, config))
    found["run"] = args.run or name
    if config.get("world"):
        # Each run generates its own.
        place = f"results/{found['run']}"
        mirror = {"folder": f"{place}/downloads", "lock": f"{place}/downloads.lock", "mirror": f"file://{place}/mirror"}
        merge(found, {"downloads": mirror})
    return found


def main() -> None:
    """Find every model, then write."""
    args = parse_args()
    if args.mirror and not args.mirror.is_dir():
        raise UserError(f"--mirror {args.mirror}: no such folder")
    if args.run and len(args.models) > 1:
        raise UserError("RUN names one run: leave it out, and each of several models gets a run of its own name")
    found: dict[str, dict] = {}
    for source in args.models:
        told = run_settings(source, args)
        if found.setdefault(told["run"], told) != told:
            raise UserError(f"MODEL {source}: another model is called '{told['run']}' too; rename one of the folders")
    for run, told in found.items():
        out = Path("results", run, "models.yaml")
        with write_atomic(out) as stream:
            stream.write(f"# Written by scripts/resolve_models.py: all settings of the run {run} beyond config.yaml.\n")
            yaml.safe_dump(told, stream, sort_keys=False, allow_unicode=True)
        print(out)


if __name__ == "__main__":
    run_main(main)

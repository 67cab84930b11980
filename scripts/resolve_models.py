r"""Find the models of a study before it is planned: where each lies, which commit it is, how deep it is.

A model is a folder, or a repository of the Hugging Face hub (owner/name, perhaps with @revision), or a name of
resources/models.tsv or `pretrain.models`. Of a repository only config.json is fetched. Out: a config file to be merged
over config/study.yaml, with the models and what else the options say; its name is printed. What cannot be studied is
refused here.

Example:
    python scripts/resolve_models.py resources/demo/models/mbert --languages en de --out models.yaml
"""

import argparse
import os
import re
from argparse import Namespace
from pathlib import Path

import yaml

from crossalign.catalog.config import ROOT, merged
from crossalign.catalog.studied import backend_of, is_taken, model_name, registered
from crossalign.catalog.trained_models import trained_models
from crossalign.fetch.models import look_at
from crossalign.fetch.retry import RetryPolicy
from crossalign.fetch.sources import Mirror, Settings
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic

REPOSITORY = re.compile(r"(?P<hub>[\w.-]+/[\w.-]+)(@(?P<revision>\S+))?")


def parse_args() -> Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a folder, owner/name[@revision] or a known name")
    parser.add_argument("--configs", nargs="+", type=Path, default=[ROOT / "config/study.yaml"], metavar="FILE",
                        help="config files of the study, merged over config.yaml")  # fmt: skip
    parser.add_argument("--run", help="the name of the run")
    parser.add_argument("--languages", nargs="+", metavar="LANG", help="English comes along")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED")
    parser.add_argument(
        "--mirror", type=Path, metavar="FOLDER", help="read data from here, as tools/make_mirror.py lays out"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: results/<run>/models.yaml")
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


def main() -> None:
    """Find every model, then write."""
    args = parse_args()
    found = {"run": args.run} if args.run else {}
    if args.mirror:
        if not args.mirror.is_dir():
            raise UserError(f"--mirror {args.mirror}: no such folder")
        found["downloads"] = {"mirror": f"file://{args.mirror.resolve()}", "mirror_checksums": "mirror"}
    if args.seeds:
        found["seeds"] = args.seeds
    # Not checked: it has no models yet.
    config = merged(args.configs)
    # A model that the mirror of data does not have comes from the hub.
    models: dict[str, dict] = {}
    for source in args.models:
        name, entry = resolved(source, config)
        if models.setdefault(name, entry) != entry:
            raise UserError(f"MODEL {source}: another model is called '{name}' too; rename one of the folders")
    found["study"] = {"models": models}
    if args.languages:
        found["study"]["languages"] = list(dict.fromkeys(["en", *args.languages]))
    out = args.out or Path("results", found.get("run") or config["run"], "models.yaml")
    with write_atomic(out) as stream:
        yaml.safe_dump(found, stream, sort_keys=False)
    print(out)


if __name__ == "__main__":
    run_main(main)

"""Config files, and what they are laid over: config.yaml, which has every key, and what they `extends`."""

import copy
import json
from collections.abc import Iterable
from pathlib import Path

import yaml

from crossalign.runtime.errors import UserError

ROOT = Path(__file__).resolve().parents[3]


def merged(files: Iterable[Path]) -> dict:
    """The config of some files, not checked."""
    files = list(files)
    config: dict = {}
    for file in [ROOT / "config.yaml", *bases(files), *files]:
        merge(config, read(file))
    config.pop("extends", None)
    read_told(config)
    return config


def read_told(config: dict) -> None:
    """What is told of a run in words, in a file that the config names; what the config says itself comes first."""
    for key in ("reasons", "replaced"):
        if file := config.get(f"{key}_file"):
            config[key] = read(ROOT / file) | (config.get(key) or {})


def merge(config: dict, changes: dict) -> None:
    """Mappings are merged key by key, everything else is replaced."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            merge(config[key], value)
        else:
            config[key] = copy.deepcopy(value)


def read(file: Path) -> dict:
    """What one file says."""
    try:
        text = file.read_text(encoding="utf-8")
        # JSON is YAML as well, but a hundred times slower to read as such.
        said = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        refuse_old_name(file)
        raise UserError(f"{file}: cannot read: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"{file}: {error}") from error
    if not isinstance(said or {}, dict):
        raise UserError(f"{file}: expected keys with values, found {said!r}")
    return said or {}


def bases(files: Iterable[Path]) -> list[Path]:
    """The files that some files extend, in the order of merging: all come before the files that are named."""
    files = list(map(Path, files))
    named = [file.resolve() for file in files]
    found: dict[Path, None] = {}

    def follow(file: Path, chain: tuple[Path, ...]) -> None:
        if file.resolve() in chain:
            circle = " -> ".join(each.name for each in (*chain[chain.index(file.resolve()) :], file))
            raise UserError(f"{chain[-1]}: 'extends' leads in a circle: {circle}")
        if (told := read(file).get("extends")) is not None:
            base = extended(file, told)
            follow(base, (*chain, file.resolve()))
            if base not in named:
                found[base] = None

    for file in files:
        follow(file, ())
    # It is below all others anyway.
    found.pop(ROOT / "config.yaml", None)
    return list(found)


def refuse_old_name(file: Path) -> None:
    """Configs of the project had other places: config.demo.yaml is config/demo.yaml."""
    first, _, name = file.name.partition(".")
    if first == "config" and (ROOT / "config" / name).is_file():
        raise UserError(f"{file}: this config is {ROOT / 'config' / name} now")


def extended(file: Path, told: object) -> Path:
    """The file that a config extends: by the name of a config of the project, or by its path from there."""
    names = {"paper": ROOT / "config.yaml"}
    names |= {path.stem: path for path in sorted(ROOT.glob("config/*.yaml"))}
    base = names.get(str(told)) or (file.parent / str(told)).resolve()
    if not base.is_file():
        refuse_old_name(base)
        raise UserError(f"{file}: extends '{told}', which is no file beside it and none of {', '.join(names)}")
    return base

"""Checks a config before the first job: the schema, then what no schema can say.

Every message names the key, the value and what is allowed; all errors are told at once.
"""

import copy
import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import jsonschema
import yaml

from crossalign.catalog.trained_models import own_models, wrong_entries
from crossalign.fetch.register import read_models
from crossalign.papers.all_items import ITEMS
from crossalign.runtime.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "resources" / "schemas" / "config.schema.yaml"
LANGUAGES = ROOT / "resources" / "languages.tsv"
MODELS = ROOT / "resources" / "models.tsv"


def load(files: list[Path]) -> dict:
    """config.yaml with the given files merged over it, checked. Snakemake does the same for its rules."""
    config: dict = {}
    for file in [ROOT / "config.yaml", *files]:
        try:
            merge(config, yaml.safe_load(file.read_text(encoding="utf-8")) or {})
        except OSError as error:
            raise UserError(f"{file}: cannot read: {error.strerror}") from error
        except yaml.YAMLError as error:
            raise UserError(f"{file}: {error}") from error
    check(config)
    return config


def merge(config: dict, changes: dict) -> None:
    """Mappings are merged key by key, everything else is replaced."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            merge(config[key], value)
        else:
            config[key] = copy.deepcopy(value)


def check(config: dict) -> None:
    """Raise a UserError that lists everything wrong with `config`."""
    problems = list(schema_problems(config)) or list(unsafe_text(config)) or list(meaning_problems(config))
    if problems:
        raise UserError("the config has errors:\n" + "\n".join(f"  - {problem}" for problem in problems))


def schema_problems(config: dict) -> Iterator[str]:
    """What the schema finds, in our words."""
    schema = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for error in sorted(validator.iter_errors(config), key=lambda error: [str(part) for part in error.absolute_path]):
        yield describe(error)


def key_of(parts: Iterable[object]) -> str:
    """`finetune.pos.batch`, `seeds[2]`."""
    name = ""
    for part in parts:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else str(part)
    return name or "the config"


def describe(error: jsonschema.ValidationError) -> str:
    """One sentence for one error of the schema."""
    key = key_of(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.validator_value, bool):
        allowed = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(error.instance) - set(allowed))
        return "; ".join(f"{key}: unknown key '{name}'{suggestion(name, allowed)}" for name in unknown)
    if error.validator == "required":
        # One error per missing key, which stands in quotes at the start of the message.
        return f"{key}: the key {error.message.removesuffix(' is a required property')} is missing"
    meaning = error.schema.get("description", "")
    allowed = "" if error.validator != "enum" else f"one of {', '.join(map(str, error.validator_value))}"
    expected = ": ".join(part for part in (meaning, allowed) if part) or error.message
    return f"{key}: {error.instance!r} is not allowed; expected {expected}"


def suggestion(name: str, allowed: list[str]) -> str:
    near = difflib.get_close_matches(str(name), allowed, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; allowed are {', '.join(allowed)}"


def known_languages() -> list[str]:
    """The codes of the register of languages."""
    return [line.split("\t")[0] for line in LANGUAGES.read_text(encoding="utf-8").splitlines()[1:]]


def meaning_problems(config: dict) -> Iterator[str]:
    """What fits the schema and is wrong all the same."""
    yield from unknown_items(config)
    yield from unknown_languages(config)
    yield from unknown_models(config)
    yield from layers_beyond(config)
    yield from missing_treebanks(config)
    yield from wrong_recipes(config)
    yield from wrong_entries(config, set(known_languages()), set(read_models(MODELS)))
    if config["downloads"]["mirror_checksums"] == "mirror" and config["downloads"]["mirror"] is None:
        yield "downloads.mirror_checksums: 'mirror' needs an address in downloads.mirror"
    if (scope := config["adjustment"]["continual"]["alpha_scope"]) in config["adjust"]["further_alpha_scopes"]:
        yield f"adjust.further_alpha_scopes: '{scope}' is that of adjustment.continual.alpha_scope already"
    if config["adjust"]["pool"] < (largest := max(map(pair_count, all_pairs(config)))):
        yield f"adjust.pool: {config['adjust']['pool']} pairs are fewer than the largest size that is asked, {largest}"


# Keys that become parts of file names and arguments of programs.
PATHS = (("downloads", "folder"), ("downloads", "lock"), ("models",), ("world",), ("aligner", "path"))


def unsafe_text(value: object, place: tuple = ()) -> Iterator[str]:
    """Text that cannot be quoted away: a `$` in a pattern lets a line break pass, Snakemake takes braces for wildcards,
    programs take a leading dash for an option, and nobody puts a home folder in the place of ~."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from unsafe_text(str(key), (*place, str(key)))
            yield from unsafe_text(inner, (*place, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from unsafe_text(inner, (*place, number))
    elif isinstance(value, str):
        if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in value):
            yield f"{key_of(place)}: {value!r} has a line break or another control character, which is not allowed"
        elif place in PATHS and (value.startswith(("-", "~")) or set("{}") & set(value)):
            expected = "a path without braces that does not begin with - or ~"
            yield f"{key_of(place)}: {value!r} is not allowed; expected {expected}"


def unknown_items(config: dict) -> Iterator[str]:
    for place, item in enumerate(config["items"] if config["items"] != "all" else []):
        paper = item.partition("/")[0]
        if item not in ITEMS:
            yield f"items[{place}]: unknown item '{item}'{suggestion(item, sorted(ITEMS))}"
        elif paper not in config["papers"]:
            yield f"items[{place}]: '{item}' belongs to '{paper}', which is not among papers"
    for item in config["skip"]:
        if item not in ITEMS:
            yield f"skip: unknown item '{item}'{suggestion(item, sorted(ITEMS))}"
        elif config["items"] != "all" and item in config["items"]:
            yield f"skip: '{item}' stands among items too; one of the two must go"


# Keys that hold language codes: a list, a mapping by language, or one code.
LANGUAGE_KEYS = (
    ("align-predict", ("languages", "beside", "sources", "treebanks", "test_treebanks", "own_treebanks")),
    ("align-predict", ("similarity_languages",)),
    ("anc", ("norm_languages", "xnli_languages", "known_languages", "scaling_languages")),
    ("adjust", ("languages", "translated")),
    ("talk", ("profile_languages", "languages", "treebanks", "ner", "text")),
)


def unknown_languages(config: dict) -> Iterator[str]:
    known = known_languages()
    for paper, keys in LANGUAGE_KEYS:
        for key in keys:
            for lang in config[paper][key]:
                if lang not in known:
                    yield f"{paper}.{key}: unknown language '{lang}'; known are {', '.join(sorted(known))}"
    paper = config["align-predict"]
    for key in ("sources", "beside", "similarity_languages"):
        for lang in paper[key]:
            if lang not in paper["languages"]:
                yield f"align-predict.{key}: '{lang}' is not among align-predict.languages"
    for study in ("sizes", "aggregations", "token_choices", "extended"):
        lang = config["adjust"][study]["lang"]
        if lang not in config["adjust"]["languages"]:
            yield f"adjust.{study}.lang: '{lang}' is not among adjust.languages"
    for lang in config["talk"]["profile_languages"]:
        if lang not in config["talk"]["languages"]:
            yield f"talk.profile_languages: '{lang}' is not among talk.languages"


def unknown_models(config: dict) -> Iterator[str]:
    own = own_models(config)
    known = [*read_models(MODELS), *own]
    anc = config["anc"]
    chosen = {"align-predict.base": [config["align-predict"]["base"]], "adjust.base": [config["adjust"]["base"]]}
    chosen |= {"adjust.extended.base": [config["adjust"]["extended"]["base"]], "talk.base": [config["talk"]["base"]]}
    chosen |= {f"anc.{key}": anc[key] for key in ("schemes", "known_models", "xlmr", "xglm")}
    chosen |= {"anc.second_normformer": [anc["second_normformer"]]}
    chosen |= {"pretraining.vocabulary": [config["pretraining"]["vocabulary"]]}
    for key, names in chosen.items():
        for name in names:
            if name not in known:
                yield f"{key}: unknown model '{name}'{suggestion(name, known)}"
    for name in [*anc["schemes"], anc["second_normformer"]] if anc["norm_models"] == "pretrain" else []:
        if not re.fullmatch(r"scale-(post|pre|normformer)(-v2)?", name):
            yield f"anc.schemes: '{name}' cannot be pretrained here: its name does not say a scheme, as scale-post does"


def layers_beyond(config: dict) -> Iterator[str]:
    """Layers that the base model does not have."""
    base = config["align-predict"]["base"]
    models = read_models(MODELS)
    own = own_models(config).get(base)
    layers = own["layers"] if own else models[base].layers if base in models else None
    for key in ("layer_pairs", "layer_sets"):
        for place, name in enumerate(config["align-predict"][key]):
            numbers = [int(number) for number in re.findall(r"\d+", name)]
            if layers and any(not 1 <= number <= layers for number in numbers):
                yield f"align-predict.{key}[{place}]: '{name}' is impossible; {base} has the layers 1 to {layers}"
            elif numbers != sorted(numbers):
                yield f"align-predict.{key}[{place}]: '{name}' runs backwards; write the smaller layer first"


def missing_treebanks(config: dict) -> Iterator[str]:
    for lang in config["align-predict"]["sources"]:
        if lang not in config["align-predict"]["treebanks"]:
            yield f"align-predict.treebanks: no treebank is named for the source language '{lang}'"
    talk = config["talk"]
    for lang in talk["profile_languages"]:
        if lang not in talk["treebanks"]:
            yield f"talk.treebanks: no treebank is named for '{lang}' of talk.profile_languages"
    for treebank in talk["folded"]:
        if treebank not in talk["treebanks"].values():
            yield f"talk.folded: '{treebank}' is not among talk.treebanks"


def wrong_recipes(config: dict) -> Iterator[str]:
    for name, own in config["finetune"].items():
        if name == "defaults":
            continue
        recipe = config["finetune"]["defaults"] | own
        for key in ("batch", "learning_rate", "epochs", "selection", "max_length"):
            if key not in recipe:
                yield f"finetune.{name}: '{key}' is given neither here nor in finetune.defaults"
        if recipe.get("patience") and recipe.get("selection") == "last":
            yield f"finetune.{name}.patience: early stopping needs 'selection: best'"
        searched = name in ("parsing", "pos", "ner") and config["align-predict"]["search_per_init"]
        if searched and recipe.get("selection") == "last":
            yield f"finetune.{name}.selection: align-predict.search_per_init chooses by dev scores and needs 'best'"


def pair_count(pairs: str) -> int:
    """30k -> 30000."""
    return int(pairs[:-1]) * 1000 if pairs.endswith("k") else int(pairs)


def all_pairs(config: dict) -> list[str]:
    adjust = config["adjust"]
    return [adjust["pairs"], *adjust["sizes"]["pairs"], *adjust["extended"]["pairs"]]

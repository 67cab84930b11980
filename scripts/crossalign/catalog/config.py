"""Checks a config before the first job: keys and values (`catalog/settings.py`), then what these cannot say.

Every message names the key, the value and what is allowed; all errors are told at once.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from crossalign.catalog.labelled import labelled, wrong_datasets
from crossalign.catalog.layers import ROOT, merged
from crossalign.catalog.papers import papers
from crossalign.catalog.sets import DataSet, raw_files
from crossalign.catalog.studied import registered, shape_of, studied, wrong_models
from crossalign.catalog.targets import KINDS, bases
from crossalign.catalog.trained_models import trained_model, trained_models, wrong_entries
from crossalign.runtime.checks import key_of, suggestion, wrong_keys
from crossalign.runtime.errors import UserError

LANGUAGES = ROOT / "resources" / "languages.tsv"


def load(files: list[Path]) -> dict:
    """The config of some files, checked. Snakemake merges the same for its rules."""
    config = merged(files)
    check(config)
    return config


def check(config: dict) -> None:
    """Raise a UserError that lists everything wrong with `config`, but for the names of items, which papers know."""
    # Whoever only reads a config need not load pydantic.
    from crossalign.catalog.settings import Config

    refuse(
        list(unsafe_text(config)) or list(wrong_keys(Config, config, "the config")) or list(meaning_problems(config))
    )


def refuse(problems: list[str]) -> None:
    """Raise a UserError if there are any."""
    if problems:
        raise UserError("the config has errors:\n" + "\n".join(f"  - {problem}" for problem in problems))


def known_languages() -> list[str]:
    """The codes of the register of languages."""
    return [line.split("\t")[0] for line in LANGUAGES.read_text(encoding="utf-8").splitlines()[1:]]


def meaning_problems(config: dict) -> Iterator[str]:
    """What fits the schema and is wrong all the same."""
    yield from (f"the config: the key '{paper}' is missing" for paper in config["papers"] if paper not in config)
    yield from unknown_languages(config)
    yield from unknown_models(config)
    yield from several_vocabularies(config)
    yield from layers_beyond(config)
    yield from missing_treebanks(config)
    yield from wrong_presets(config)
    yield from wrong_models(config)
    yield from wrong_datasets(config, set(known_languages()))
    yield from unknown_sets(config)
    yield from wrong_entries(config, set(known_languages()), set(registered()))
    if config["downloads"]["mirror_checksums"] == "mirror" and config["downloads"]["mirror"] is None:
        yield "downloads.mirror_checksums: 'mirror' needs an address in downloads.mirror"
    if (scope := config["pull"]["continual"]["alpha_scope"]) in config["adjust"]["further_alpha_scopes"]:
        yield f"adjust.further_alpha_scopes: '{scope}' is that of pull.continual.alpha_scope already"
    adjust = config["adjust"]
    asked = [adjust["pairs"], *adjust["sizes"]["pairs"], *adjust["extended"]["pairs"]]
    if adjust["pool"] < (largest := max(map(pair_count, asked))):
        yield f"adjust.pool: {adjust['pool']} pairs are fewer than the largest size that is asked, {largest}"


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
        elif (place in PATHS or place[-1:] == ("folder",)) and (value.startswith(("-", "~")) or set("{}") & set(value)):
            expected = "a path without braces that does not begin with - or ~"
            yield f"{key_of(place)}: {value!r} is not allowed; expected {expected}"


# Keys that hold language codes: a list, a mapping by language, or one code.
LANGUAGE_KEYS = (
    ("align-predict", ("languages", "extra_targets", "sources", "treebanks", "test_treebanks", "own_treebanks")),
    ("align-predict", ("similarity_languages",)),
    ("anc", ("norm_languages", "xnli_languages", "known_languages", "scaling_languages")),
    ("adjust", ("languages", "translated")),
    ("talk", ("profile_languages", "languages", "treebanks", "ner", "text", "read_languages")),
)


def unknown_languages(config: dict) -> Iterator[str]:
    known = known_languages()
    for paper, keys in LANGUAGE_KEYS:
        for key in keys:
            for lang in config[paper].get(key, ()):
                if lang not in known:
                    yield f"{paper}.{key}: unknown language '{lang}'; known are {', '.join(sorted(known))}"
    paper = config["align-predict"]
    for key in ("sources", "extra_targets", "similarity_languages"):
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
    known = list(dict.fromkeys([*registered(), *trained_models(config), *studied(config)]))
    anc = config["anc"]
    chosen = {f"{paper}.base": bases(config, paper) for paper in ("align-predict", "adjust", "talk")}
    chosen |= {"adjust.extended.base": [config["adjust"]["extended"]["base"]]}
    chosen |= {"study.beside": (config.get("study") or {}).get("beside", ())}
    chosen |= {f"anc.{key}": anc[key] for key in ("schemes", "known_models", "xlmr", "xglm")}
    chosen |= {"anc.second_normformer": [anc["second_normformer"]]}
    for key, names in chosen.items():
        for name in names:
            if name not in known:
                yield f"{key}: unknown model '{name}'{suggestion(name, known)}"


def several_vocabularies(config: dict) -> Iterator[str]:
    """Pretrainings that take turns and cut words differently, where the pieces are linked or audited once for all."""
    for paper in ("adjust", "talk"):
        models = {name: trained_model(config, name) or {} for name in bases(config, paper)}
        if len({entry.get("vocabulary", name) for name, entry in models.items()}) > 1:
            yield f"{paper}.base: {', '.join(models)} take turns and must have the same vocabulary"


def unknown_sets(config: dict) -> Iterator[str]:
    for place, name in enumerate(config["align-predict"]["domains"]["ner"]):
        data = DataSet("ner", name, "test")
        try:
            if not labelled(config, data):
                raw_files(data)
        except UserError:
            yield f"align-predict.domains.ner[{place}]: '{name}' is neither of WikiANN or CoNLL-2003 nor of `datasets`"


def layers_beyond(config: dict) -> Iterator[str]:
    """Layers that the base model does not have."""
    base = bases(config)[0]
    layers = shape_of(config, base).get("layers")
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
        if lang not in talk["treebanks"] and lang not in talk["ner"]:
            yield f"talk.treebanks: no treebank is named for '{lang}' of talk.profile_languages, nor is it in talk.ner"
    for treebank in talk["folded"]:
        if treebank not in talk["treebanks"].values():
            yield f"talk.folded: '{treebank}' is not among talk.treebanks"


STUDIES = ("", "unseen", *papers())


def wrong_presets(config: dict) -> Iterator[str]:
    search = config["align-predict"]["search_per_init"]
    if search == {}:
        yield "align-predict.search_per_init: {} names no values to try"
    presets = {name: entry for name, entry in config["finetune"].items() if name != "defaults"}
    for name, entry in presets.items():
        preset = config["finetune"]["defaults"] | entry
        study, _, task = name.rpartition("-")
        if task not in KINDS or study not in STUDIES:
            near = difflib.get_close_matches(name, sorted(set(presets) - {name}), n=1)
            rule = f"a name is a task ({', '.join(KINDS)}), alone or behind a study, as adjust-ner"
            yield f"finetune: unknown key '{name}'; " + (f"did you mean '{near[0]}'?" if near else rule)
        for key in ("batch", "learning_rate", "epochs", "selection", "max_length"):
            if key not in preset:
                yield f"finetune.{name}: '{key}' is given neither here nor in finetune.defaults"
        if preset.get("patience") and preset.get("selection") == "last":
            yield f"finetune.{name}.patience: early stopping needs 'selection: best'"
        if search and name in ("parsing", "pos", "ner") and preset.get("selection") == "last":
            yield f"finetune.{name}.selection: align-predict.search_per_init chooses by dev scores and needs 'best'"


def pair_count(pairs: str) -> int:
    """30k -> 30000."""
    return int(pairs[:-1]) * 1000 if pairs.endswith("k") else int(pairs)

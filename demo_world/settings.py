"""Reading and checking the settings of the world: unknown keys, wrong types and impossible values are errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from crossalign.runtime.errors import UserError

SIZE, SHARE, CODES, NAME, RANGE, ANY = "size", "share", "codes", "name", "range", "any"
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    SIZE: (lambda value: type(value) is int and value >= 0, "a whole number, 0 or more"),
    SHARE: (lambda value: type(value) in (int, float) and 0 <= value <= 1, "a number from 0 to 1"),
    NAME: (lambda value: isinstance(value, str), "a name"),
    RANGE: (lambda value: isinstance(value, list) and len(value) == 2 and 0 < value[0] <= value[1], "[least, most]"),
    CODES: (lambda value: isinstance(value, list), "a list of languages"),
    ANY: (lambda value: True, ""),
}
BRANCH = {"parent": NAME, "keep": SHARE, "changes": ANY, "loans": ANY, "phonology": ANY, "grammar": ANY}
BRANCH |= {"spelling": NAME}
# What the premise of an inference may change of its hypothesis.
CHANGES = {"negate", "add", "drop", "verb", "object", "detail", "subject"}
SPLITS = {"train": SIZE, "dev": SIZE, "test": SIZE}
DOMAIN_SHARES = [
    "names", "pronouns", "adjectives", "numbers", "relatives", "phrases", "coordination", "clauses", "copular", "modal",
    "negation", "past", "future", "passive", "questions", "adverbs", "obliques", "noise",
]  # fmt: skip

SCHEMA: dict[str, Any] = {
    "seed": SIZE,
    "distinct": SIZE,
    "concepts": {
        "topics": ANY, "topic_pull": SIZE, "international": SHARE, "conversion": SHARE, "homonyms": SHARE,
        "nouns": {"*": SIZE}, "verbs": ANY, "adjectives": ANY, "adverbs": {"manner": SIZE, "time": SIZE},
        "names": {"first": SIZE, "last": SIZE, "place": SIZE, "organisation": SIZE, "fresh": SHARE},
    },
    "groups": {"*": BRANCH},
    "languages": {"*": BRANCH},
    "seen": CODES,
    "unseen": CODES,
    "domains": {"*": {"topics": ANY} | dict.fromkeys(DOMAIN_SHARES, SHARE)},
    "treebanks": {"*": {"domain": NAME, "same_as": NAME} | SPLITS},
    "pud": {"domain": NAME, "languages": CODES, "sentences": SIZE},
    "wikiann": {
        "domain": NAME, "headings": SHARE,
        "large": {"languages": CODES, "extra": SIZE} | SPLITS, "small": {"languages": CODES, "extra": SIZE} | SPLITS,
        "counts": {"*": SPLITS},
    },
    "conll2003": {"domain": NAME, "document": SIZE} | SPLITS,
    "nli": {
        "negated": SHARE, "general": SHARE, "details": SIZE, "changes": ANY, "train": SIZE, "undecided": SHARE,
        "xnli": {"languages": CODES, "dev": SIZE, "test": SIZE}, "fifteen_way": {"languages": CODES, "sentences": SIZE},
        "extension": {"languages": CODES, "rows": SIZE},
    },
    "qa": {
        "sentences": RANGE, "questions": SIZE, "train": SIZE, "dev": SIZE,
        "xquad": {"languages": CODES, "questions": SIZE},
        "mlqa": {"languages": CODES, "dev": SIZE, "test": SIZE},
        "translated": {"languages": CODES, "train": SIZE, "dev": SIZE},
        "tydiqa": {"language": NAME, "name": NAME, "dev": SIZE},
    },
    "bitext": {
        "domain": NAME, "languages": CODES, "pairs": SIZE, "wrong": SHARE, "partial": SHARE,
        "repeated": SHARE, "long": SHARE,
    },
    "text": {
        "domain": NAME, "article": RANGE, "common": SHARE, "mixed": SHARE, "quoted": SHARE, "counts": {"*": SIZE},
        "cc100": CODES, "alphabets": CODES,
        "demo": {"seen": SIZE, "unseen": SIZE, "cc100": SIZE, "narabizi": SIZE},
        "pretraining": {"seen": SIZE, "unseen": SIZE, "cc100": SIZE, "narabizi": SIZE},
    },
}  # fmt: skip
# `counts`: how many of a language, where that is not what its group has. `distinct`: where a set has more entries, they
# come again.
OPTIONAL = {"same_as", "train", "dev", "counts", "distinct", *BRANCH}


def load_settings(path: str | Path, override: dict[str, Any] | None = None) -> dict[str, Any]:
    """The settings in a YAML file, with `override` merged over them, checked."""
    try:
        settings = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no settings at {path}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {error}") from None
    if not isinstance(settings, dict):
        raise UserError(f"{path}: a mapping is expected, with the keys {', '.join(SCHEMA)}")
    settings = merge(settings, override or {})
    check_settings(settings)
    return settings


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Mappings merged key by key; anything else is replaced."""
    both = dict(old)
    for key, value in new.items():
        nested = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = merge(both[key], value) if nested else value
    return both


def check_settings(settings: dict[str, Any]) -> None:
    """Raise a UserError that names the first key at fault."""
    _check(settings, SCHEMA, "", list(settings.get("languages") or {}))
    domains = {where: settings[where]["domain"] for where in ("pud", "wikiann", "conll2003", "bitext", "text")}
    domains |= {f"treebanks: {name}": spec["domain"] for name, spec in settings["treebanks"].items()}
    for where, domain in domains.items():
        if domain not in settings["domains"]:
            raise UserError(f"{where}: unknown domain {domain!r}; known: {', '.join(settings['domains'])}")
    for name in settings["treebanks"]:
        if (code := name.split("_")[0]) not in settings["languages"]:
            raise UserError(f"treebanks: {name}: the language {code!r} is not among the languages")
    for key in ("seen", "unseen"):
        if not settings[key]:
            raise UserError(f"{key}: at least one language is needed")
    changes = set(settings["nli"]["changes"])
    if not (changes <= CHANGES and "negate" in changes and changes & {"add", "drop"}):
        raise UserError(f"nli: changes: {', '.join(sorted(CHANGES))} are known; negate is needed, and add or drop")
    nouns = settings["concepts"]["nouns"]
    for number, spec in enumerate(settings["concepts"]["verbs"] + settings["concepts"]["adjectives"], 1):
        for name in [*spec.get("subject", []), *spec.get("object", []), *spec.get("of", [])]:
            if name not in nouns:
                raise UserError(f"concepts: entry {number} of verbs and adjectives: {name!r} is no noun class")
        if spec.get("size", 0) < 2 or spec["size"] % 2:
            raise UserError(f"concepts: {spec}: size must be even (words come in opposites) and at least 2")
    for name, size in nouns.items():
        if size < 3:
            raise UserError(
                f"concepts: nouns: {name} is {size}; a general term and two kinds are needed, so at least 3"
            )


def _check(value: Any, rule: Any, where: str, languages: list[str]) -> None:
    if isinstance(rule, str):
        good, expected = KINDS[rule]
        if not good(value):
            raise UserError(f"{where}: {value!r} is not right; {expected} is expected")
        for code in value if rule == CODES else ():
            if code not in languages:
                raise UserError(f"{where}: unknown language {code!r}; known: {', '.join(sorted(languages))}")
        return
    if not isinstance(value, dict):
        raise UserError(f"{where or 'settings'}: a mapping is expected, not {value!r}")
    before = f"{where}: " if where else ""
    rules = dict.fromkeys(value, rule["*"]) if "*" in rule else rule
    if unknown := [key for key in value if key not in rules]:
        raise UserError(f"{before}unknown key {unknown[0]!r}; known: {', '.join(rule)}")
    if missing := [key for key in rules if key not in value and key not in OPTIONAL]:
        raise UserError(f"{before}the key {missing[0]!r} is missing")
    for key, below in rules.items():
        if key in value:
            _check(value[key], below, f"{before}{key}", languages)

"""Settings at fault are told by name, before anything is written."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from world_for_tests import SETTINGS, small_settings

from crossalign.runtime.errors import UserError
from crossalign.world.settings import check_settings, load_settings, merge
from crossalign.world.world import World

BAD: list[tuple[dict[str, Any], str]] = [
    ({"sede": 1}, "unknown key 'sede'; known: seed"),
    ({"pud": {"sentense": 3}}, "pud: unknown key 'sentense'; known: domain, languages, sentences"),
    ({"treebanks": {"en_ewt": {"train": -5}}}, "treebanks: en_ewt: train: -5 is not right; a whole number, 0 or more"),
    ({"nli": {"train": 2.5}}, "nli: train: 2.5 is not right"),
    ({"nli": {"train": True}}, "nli: train: True is not right"),
    ({"nli": {"negated": 1.2}}, "nli: negated: 1.2 is not right; a number from 0 to 1"),
    ({"bitext": {"languages": ["es", "xx"]}}, "bitext: languages: unknown language 'xx'; known: ar"),
    ({"bitext": {"languages": "es"}}, "bitext: languages: 'es' is not right; a list of languages"),
    ({"pud": {"domain": "poetry"}}, "pud: unknown domain 'poetry'; known: web"),
    ({"treebanks": {"kk_ktb": {"domain": "web", "test": 1}}}, "treebanks: kk_ktb: the language 'kk' is not among"),
    ({"treebanks": {"en_ewt": {"domain": "poem"}}}, "treebanks: en_ewt: unknown domain 'poem'"),
    ({"qa": {"sentences": [5, 3]}}, r"qa: sentences: \[5, 3\] is not right; \[least, most\]"),
    ({"domains": {"web": {"names": "many"}}}, "domains: web: names: 'many' is not right"),
    ({"concepts": {"nouns": {"animal": 2}}}, "nouns: animal is 2; a class needs its general term and two kinds"),
    ({"concepts": {"adjectives": [{"of": ["person"], "size": 3}]}}, "size must be even"),
    ({"concepts": {"adjectives": [{"of": ["ghost"], "size": 2}]}}, "'ghost' is no noun class"),
    ({"seen": []}, "seen: at least one language"),
    ({"text": 3}, "text: a mapping is expected, not 3"),
]
BAD_LANGUAGES: list[tuple[dict[str, Any], str]] = [
    ({"en": {"parent": "klingon"}}, "en has the parent 'klingon', which is neither a group nor a language"),
    ({"en": {"changes": ["pf"]}}, "en: changes: 'pf' is not of the form old>new"),
    ({"en": {"grammar": {"ordr": "SVO"}}}, "en: grammar: unknown key 'ordr'"),
    ({"en": {"grammar": {"order": "OSV"}}}, "en: grammar: order is 'OSV'; one of SOV, SVO, VSO is right"),
    ({"en": {"spelling": "elvish"}}, "unknown spelling 'elvish'; known: arabic"),
    ({"en": {"loans": {"xx": 0.1}}}, "en: loans: 'xx' is not a language"),
    ({"fr": {"loans": {"en": 0.1}}}, "words go round in a circle: .*fr"),
]


@pytest.mark.parametrize(("override", "message"), BAD)
def test_bad_settings(override: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_settings(merge(small_settings(), override))


@pytest.mark.parametrize(("languages", "message"), BAD_LANGUAGES)
def test_bad_languages(languages: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        World(merge(small_settings(), {"languages": languages})).renderer("en")


def test_missing_key(tmp_path: Path) -> None:
    settings = {key: value for key, value in small_settings().items() if key != "qa"}
    path = tmp_path / "world.yaml"
    path.write_text(yaml.safe_dump(settings))
    with pytest.raises(UserError, match="the key 'qa' is missing"):
        load_settings(path)


def test_unreadable_settings(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no settings at"):
        load_settings(tmp_path / "none.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [1,")
    with pytest.raises(UserError, match="not YAML"):
        load_settings(bad)
    bad.write_text("- 1")
    with pytest.raises(UserError, match="a mapping is expected"):
        load_settings(bad)


def test_program(root: Path, tmp_path: Path) -> None:
    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(root / "scripts/make_world.py"), "--out", str(tmp_path / "out"), *more]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    good = run("--settings", str(SETTINGS), "--only", "ud/en_lexnorm", "ud/gsw", "--jobs", "1")
    assert good.returncode == 0, good.stderr
    assert len((tmp_path / "out/SHA256SUMS").read_text().splitlines()) == 2
    bad = run("--settings", str(tmp_path / "none.yaml"))
    assert bad.returncode == 1 and bad.stderr.startswith("error: no settings at")

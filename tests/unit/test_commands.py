"""The command lines and settings that the rules hand to the programs."""

import shlex

import pytest
import yaml

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.commands import (
    file_options,
    finetune_settings,
    options,
    prepare_options,
    run_options,
    way_options,
)
from crossalign.catalog.sets import DataSet
from crossalign.engine.settings import PretrainOptions, PretrainSettings, Settings, read_settings
from crossalign.fetch.register import Dataset
from crossalign.runtime.errors import UserError


@pytest.fixture(scope="module")
def config(root):
    return yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8"))


def test_options_are_quoted_and_empty_ones_left_out():
    text = options(a_b="x y", none=None, off=False, on=True, empty="", number=0.5, evil="$(rm -rf x); 'y'")
    assert shlex.split(text) == ["--a-b", "x y", "--on", "--number", "0.5", "--evil", "$(rm -rf x); 'y'"]


# Set, and what the program that prepares it is told.
PREPARED = """
trees/en_ewt/train:
trees/gsw_uzh+fold2/dev: --fold 2 --part dev
trees/bxr_bdt+fold1+latn/test: --fold 1 --part test --transliterate bxr
trees/en_lexnorm/test: --several-roots
ner/wikiann_ug+latn/train: --format wikiann --lang ug --split train --transliterate ug
ner/conll2003_en/test: --format conll2003 --lang en --split test
nli/multinli_en/train: --format multinli --lang en --split train
nli/xnlimixed_hi/test: --format xnli --lang hi --split test --mix-with-english --coin-seed 1
qa/xquad_hi/test: --format squad --question-lang hi --context-lang hi --split test
qa/xquad_hi_en/test: --format xquad-cross --question-lang hi --context-lang en --split test
qa/mlqa_en_vi/test: --format mlqa --question-lang en --context-lang vi --split test
qa/squadmt_es/train: --format mlqa-translated --question-lang es --context-lang es --split train
bitext/wikimatrix_ru/pool: --lang ru --pool 250000 --max-words 64
text/wikipedia_wo/train: --format wikipedia --lang wo
text/narabizi_qaf/train: --format lines --lang qaf
text/cc100_fr/train: --format cc100 --lang fr --max-sentences 12500000
parallel/pud/ru: --format pud --lang ru
parallel/xnliext/et: --format extension --lang et --rows 10000
"""


@pytest.mark.parametrize("line", PREPARED.strip().splitlines())
def test_how_sets_are_prepared(config, line):
    name, _, expected = line.partition(":")
    assert prepare_options(config, DataSet(*name.split("/"))) == expected.strip()


def test_presets_reach_the_program(config):
    """From the config to the settings of the engine, under one name and unchanged; 0 is a value too."""
    run = Tuned("mbert", "adjust-qa", "squad_en", "random-1-2", 3)
    assert run_options(config, run) == "--init random-1-2 --task qa --seed 3"
    preset = config["finetune"]["defaults"] | config["finetune"]["adjust-qa"]
    given = read_settings(finetune_settings(config, run), Settings)
    assert given == preset
    assert Settings(**given).model_dump().items() >= (preset | {"warmup": 0.0, "seed": 1, "precision": "fp32"}).items()


def test_settings_are_read_from_files_or_from_json_itself(tmp_path):
    (tmp_path / "a.json").write_text('{"batch": 8, "learning_rate": 1e-3}')
    (tmp_path / "a.yaml").write_text("batch: 8  # examples\nlearning_rate: 1.0e-3\n")
    sources = [str(tmp_path / "a.json"), str(tmp_path / "a.yaml"), '{"batch": 8, "learning_rate": 1e-3}']
    assert all(read_settings(source, Settings) == {"batch": 8, "learning_rate": 1e-3} for source in sources)
    assert read_settings(None, Settings) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epoch: 3", "a.yaml: the settings: unknown key 'epoch'; did you mean 'epochs'?"),
        ("seed: 3", "a.yaml: the settings: unknown key 'seed'; allowed are attention_dropout, batch"),
        ("batch: 0", "a.yaml: batch: 0 is not allowed; expected a whole number from 1 (blocks per step)"),
        ("masking: 1.5", "masking: 1.5 is not allowed; expected a number above 0 and below 1 (share of masked"),
        ("betas: [0.9]", "betas: [0.9] is not allowed; expected a list of two numbers, each from 0 and below 1 (decay"),
        ("learning_rate: 5e-5", "learning_rate: '5e-5' is not allowed; expected a learning rate above 0 and at most 1"),
        ("selection: middle", "selection: 'middle' is not allowed; expected one of last, best"),
        ("steps: null", "steps: None is not allowed; expected a whole number from 1"),
        ("", "a.yaml: the settings: None is not allowed; expected a mapping"),
        ("a: [", "a.yaml: the settings are neither JSON nor YAML: while parsing"),
        ("{'a': 1}", "a.yaml: the settings are neither JSON nor YAML: Expecting property name"),
    ],
)
def test_wrong_settings_are_told_in_one_line(tmp_path, text, words):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError) as told:
        read_settings(str(tmp_path / "a.yaml"), PretrainSettings, PretrainOptions)
    assert str(told.value).startswith(f"{tmp_path}/a.yaml: ") and "\n" not in str(told.value)
    assert words in str(told.value)
    with pytest.raises(UserError, match=r"^--settings no.json: cannot read: No such file or directory$"):
        read_settings("no.json", Settings)


def test_what_a_file_is_and_how_it_comes_are_told_apart(config):
    row = Dataset("a/b.zip", "1", "https://example.org/b.zip", "https://example.com/b", 5, "git:" + "0" * 40, "MIT", "")
    assert shlex.split(file_options(row)) == [
        *("--url", "https://example.org/b.zip", "--bytes", "5", "--checksum", "git:" + "0" * 40, "--version", "1")
    ]
    assert "--downloads folder " in way_options(config["downloads"], "folder/some/file", "some/file") + " "
    assert "--attempts 5" in way_options(config["downloads"], "folder/some/file", "some/file")
    assert "--base-mirror" not in way_options(config["downloads"], "folder/some/file", "some/file")

"""The command lines that the rules hand to the programs."""

import argparse
import shlex
from dataclasses import asdict

import pytest
import yaml

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.commands import file_options, finetune_options, options, prepare_options, way_options
from crossalign.catalog.sets import DataSet
from crossalign.engine.hyperparameters import Settings, add_flags, given
from crossalign.fetch.register import Dataset


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
    """From the config through flags to the settings of the engine, under one name and unchanged; 0 is a value too."""
    run = Tuned("mbert", "adjust-qa", "squad_en", "random-1-2", 3)
    parser = argparse.ArgumentParser()
    for name in ("--task", "--init", "--seed"):
        parser.add_argument(name)
    add_flags(parser, Settings)
    args = parser.parse_args(shlex.split(finetune_options(config, run)))
    assert (args.task, args.init, args.seed) == ("qa", "random-1-2", "3")
    preset = config["finetune"]["defaults"] | config["finetune"]["adjust-qa"]
    assert given(args, Settings) == preset | {"betas": tuple(preset["betas"])}
    assert (
        asdict(Settings(**given(args, Settings))).items() >= {"warmup": 0.0, "patience": 0, "max_length": 384}.items()
    )


def test_what_a_file_is_and_how_it_comes_are_told_apart(config):
    row = Dataset("a/b.zip", "1", "https://example.org/b.zip", "https://example.com/b", 5, "git:" + "0" * 40, "MIT", "")
    assert shlex.split(file_options(row)) == [
        *("--url", "https://example.org/b.zip", "--bytes", "5", "--checksum", "git:" + "0" * 40, "--version", "1")
    ]
    assert "--downloads folder " in way_options(config["downloads"], "folder/some/file", "some/file") + " "
    assert "--attempts 5" in way_options(config["downloads"], "folder/some/file", "some/file")
    assert "--base-mirror" not in way_options(config["downloads"], "folder/some/file", "some/file")

"""The sheets: what stands in a row, what programs are told, and how the sheets are written and looked up."""

import os
import re

import pytest

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.config import load
from crossalign.catalog.downloads import file_settings, way_settings
from crossalign.catalog.prepared import prepare_settings
from crossalign.catalog.sets import DataSet
from crossalign.catalog.sheets import SHEETS, TARGETS, Sheets
from crossalign.catalog.trainings import finetune_settings
from crossalign.fetch.register import Dataset
from crossalign.papers.all_items import catalog_of
from crossalign.runtime.command import as_words
from crossalign.runtime.errors import UserError


@pytest.fixture(scope="module")
def sheets(root):
    """Those of one table."""
    return Sheets(catalog_of(load([root / "config/demo.yaml"]) | {"papers": ["anc"], "items": ["anc/table1"]}))


@pytest.fixture(scope="module")
def config():
    return load([])


def read(folder, name):
    head, *lines = (folder / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]


def test_the_sheets_of_one_table(sheets, tmp_path):
    sheets.write(tmp_path)
    assert {file.stem for file in tmp_path.iterdir()} == set(SHEETS)
    assert [row["address"] for row in read(tmp_path, "sets")] == [
        "data/nli/multinli_en/train", *(f"data/nli/xnli_{lang}/dev" for lang in ("bg", "en", "fr"))
    ]  # fmt: skip
    trainings = {
        row["address"]: {name: cell for name, cell in row.items() if cell} for row in read(tmp_path, "trainings")
    }
    names = [f"scale-{norm}" for norm in ("normformer", "post", "pre")]
    assert list(trainings) == [f"tuned/{name}/anc-nli-multinli_en/ref/seed1" for name in names]
    row = trainings["tuned/scale-pre/anc-nli-multinli_en/ref/seed1"]
    assert row.pop("settings").startswith('{"task": "nli", "init": "ref", "seed": 1, "learning_rate": 0.0007, ')
    assert row.pop("model").endswith("resources/demo/models/scale-pre")
    assert row == {
        "address": "tuned/scale-pre/anc-nli-multinli_en/ref/seed1",
        **{"preset": "anc-nli", "source": "multinli_en", "init": "ref", "seed": "1"},
        "train": "data/nli/multinli_en/train.jsonl",
        "sets": " ".join(f"data/nli/xnli_{lang}/dev.jsonl" for lang in ("bg", "en", "fr")),
        "items": "anc/table1",
    }
    (item,) = read(tmp_path, "items")
    assert item["results"].split() == [f"{address}/scores.json" for address in trainings]
    assert read(tmp_path, "vectors") == read(tmp_path, "comparisons") == []


def test_a_sheet_is_written_when_it_says_something_else(sheets, tmp_path):
    """Every job of a cluster plans anew."""
    sheets.write(tmp_path)
    for file in tmp_path.iterdir():
        os.utime(file, (1, 1))
    (tmp_path / "sets.tsv").write_text("of an earlier config")
    sheets.write(tmp_path)
    assert {file.stem for file in tmp_path.iterdir() if file.stat().st_mtime != 1} == {"sets"}
    assert len(read(tmp_path, "sets")) == 4


def test_what_no_item_asks_for_can_be_made_all_the_same(sheets):
    address = "tuned/mbert/pos-en_ewt/ref/seed1"
    assert sheets.of(address, "train") == "results/demo/data/trees/en_ewt/train.conllu" and address not in sheets.rows
    assert sheets.of("data/trees/en_ewt/train", "sources") == ["results/demo/downloads/ud/en_ewt/train.conllu"]
    assert sheets.of("tables/align-predict/table1", "title") == "RANDOM-INIT on pairs of layers"
    for address in ("similarity/models/mbert/pud", "tables/anc/table99", "data/films/a/b"):
        with pytest.raises(UserError, match=f"^no chosen table or figure asks for '{address}'; what they ask for: "):
            sheets.of(address, "model")
    with pytest.raises(UserError, match="no model 'mbert' is pretrained here"):
        sheets.of("models/mbert", "texts")
    assert sheets.of("tuned/scale-pre/anc-nli-multinli_en/ref/seed1", "bitext") == []


NO_FILES = {
    "sheet",
    "items",
    "settings",
    "title",
    "program",
    "preset",
    "source",
    "init",
    "seed",
    "code",
    "order",
    "long",
}


@pytest.mark.parametrize("files", [[], ["config/demo.yaml"], ["config/study.yaml"], ["config/rehearsal.yaml"]])
def test_whatever_a_row_reads_is_made_by_another_or_fetched_or_tracked(root, files, monkeypatch):
    monkeypatch.chdir(root)
    sheets = Sheets(catalog_of(load([root / name for name in files])))
    fetched = set(sheets.fetched())
    frames = [f"{name}.parquet" for name in ("scores", "similarity", "distances")]
    made_together = {sheets.at(name) for name in ("findings.json", *frames)}

    def there(file):
        if not file.startswith(f"{sheets.results}/") or file.startswith(f"{sheets.downloads}/"):
            return file in fetched or (root / file).is_file()
        return file == sheets.config_file or file in made_together or sheets.row_of(file)

    for address, row in sheets.rows.items():
        for column in row.keys() - NO_FILES:
            cell = row[column]
            for file in cell if isinstance(cell, list) else [cell]:
                assert there(file), (address, column, file)


# Set, and what the program that prepares it is told.
PREPARED = """
trees/en_ewt/train:
trees/gsw_uzh+fold2/dev: --fold=2 --part=dev
trees/bxr_bdt+fold1+latn/test: --fold=1 --part=test --transliterate=bxr
trees/en_lexnorm/test: --several-roots
ner/wikiann_ug+latn/train: --format=wikiann --lang=ug --split=train --transliterate=ug
ner/conll2003_en/test: --format=conll2003 --lang=en --split=test
nli/multinli_en/train: --format=multinli --lang=en --split=train
nli/xnlimixed_hi/test: --format=xnli --lang=hi --split=test --mix-with-english --coin-seed=1
qa/xquad_hi/test: --format=squad --question-lang=hi --context-lang=hi --split=test
qa/xquad_hi_en/test: --format=xquad-cross --question-lang=hi --context-lang=en --split=test
qa/mlqa_en_vi/test: --format=mlqa --question-lang=en --context-lang=vi --split=test
qa/squadmt_es/train: --format=mlqa-translated --question-lang=es --context-lang=es --split=train
bitext/wikimatrix_ru/pool: --lang=ru --pool=250000 --max-words=64
text/wikipedia_wo/train: --format=wikipedia --lang=wo
text/narabizi_qaf/train: --format=lines --lang=qaf
text/cc100_fr/train: --format=cc100 --lang=fr --max-sentences=12500000
parallel/pud/ru: --format=pud --lang=ru
parallel/xnliext/et: --format=extension --lang=et --rows=10000
"""


@pytest.mark.parametrize("line", PREPARED.strip().splitlines())
def test_how_sets_are_prepared(config, line):
    name, _, expected = line.partition(":")
    settings = prepare_settings(config, DataSet(*name.split("/")))
    assert [word for key, value in settings.items() for word in as_words(key, value)] == expected.split()


def test_presets_reach_the_program_unchanged(config):
    """Under their own names; 0 is a value too."""
    settings = finetune_settings(config, Tuned("mbert", "adjust-qa", "squad_en", "random-1-2", 3))
    preset = config["finetune"]["defaults"] | config["finetune"]["adjust-qa"]
    assert settings == {"task": "qa", "init": "random-1-2", "seed": 3} | preset
    assert settings["warmup"] == 0


def test_what_a_file_is_and_how_it_comes_are_told_apart(config):
    row = Dataset("a/b.zip", "1", "https://example.org/b.zip", "https://example.com/b", 5, "git:" + "0" * 40, "MIT", "")
    told = {"url": "https://example.org/b.zip", "bytes": 5, "checksum": "git:" + "0" * 40, "version": "1"}
    assert file_settings(row) == told
    way = way_settings(config, row)
    assert (way["mirror"], way["licence"], way["attempts"]) == ("https://example.com/b", "MIT", 5)
    assert "base_mirror" not in way and not way.keys() & told.keys()


def test_every_paper_has_its_target(root):
    """By a rule of the Snakefile that a new paper has to be given."""
    written = re.findall(
        r'^rule (\w+):\n(?: .*\n)*? +SHEETS.target\("(\w+)"\),$', (root / "Snakefile").read_text(), re.M
    )
    assert sorted(written) == sorted((name, name) for name in TARGETS)

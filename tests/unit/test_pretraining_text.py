"""Text for pretraining: apart from evaluation sets, in stages; vocabularies with the letters of other languages."""

import json
import subprocess
import sys
import zipfile

import pytest
from tests.unit.pretrained import pretrained_run

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.config import check, load
from crossalign.catalog.sets import DataSet, text_set
from crossalign.catalog.sheets import Sheets
from crossalign.catalog.stand_in import base_name
from crossalign.catalog.targets import having
from crossalign.catalog.trained_models import texts_of, trained_model
from crossalign.catalog.trainings import pretrain_settings
from crossalign.data.conllu import read_tagged
from crossalign.data.report import Report
from crossalign.data.text import Apart
from crossalign.engine.tokenizer import letters_of, train_vocabulary
from crossalign.papers import make
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.context import Context
from crossalign.papers.talk.tables import sources
from crossalign.results.reading import Results
from crossalign.runtime.errors import UserError

TREE = """# sent_id = 1
# text = Don't you think, he said to them all, that it rains?
1	Do	_	AUX	_	_	0	root	_	_
2	n't	_	PART	_	_	1	advmod	_	_

"""


@pytest.fixture(scope="module")
def small(root):
    return pretrained_run(root)


def apart(tmp_path, name, content, lang="en", words=8):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return Apart([path], lang, words)


def test_eight_words_in_a_row_are_found_whatever_stands_between(tmp_path):
    found = apart(tmp_path, "test.conllu", TREE)
    assert found.shares("And then: «you think he said to them all that» was all.")
    assert found.shares("YOU THINK, HE SAID TO THEM ALL: THAT")
    # Seven of them, and eight in another order.
    assert not found.shares("you think he said to them all is it so")
    assert not found.shares("think you he said to them all that")


def test_every_kind_of_evaluation_set_counts(tmp_path):
    words = "one two three four five six seven eight"
    for name, content in {
        "nli.jsonl": json.dumps({"premise": "-", "hypothesis": words, "label": "neutral"}),
        "qa.jsonl": json.dumps({"context": words, "question": "?", "answers": []}),
        "ner.jsonl": json.dumps({"tokens": words.split(), "tags": ["O"] * 8}),
        "en.txt": words,
        "forms.conllu": "".join(f"{n}\t{w}\t_\tX\t_\t_\t_\t_\t_\t_\n" for n, w in enumerate(words.split(), 1)) + "\n",
    }.items():
        assert apart(tmp_path, name, content + "\n").shares(f"zero {words} nine"), name


def test_unspaced_scripts_count_characters_and_vowel_signs_part_no_word(tmp_path):
    text = "我们昨天在北京的大学里看见了他们"
    assert apart(tmp_path, "zh.txt", text, "zh").shares(f"据说，{text[:14]}！")
    assert not apart(tmp_path, "zh.txt", text, "zh").shares(text[:13])
    hindi = "यह किताब मेरे भाई ने कल शाम को खरीदी थी"
    assert apart(tmp_path, "hi.txt", hindi, "hi").shares(hindi)
    assert not apart(tmp_path, "hi.txt", hindi, "hi").shares(" ".join(hindi.split()[:7]))


def test_prepare_text_drops_what_an_evaluation_set_has(root, tmp_path):
    held = "the quick brown fox jumps over the lazy dog"
    (tmp_path / "lines.txt").write_text("".join(f"Sentence number {n} is here.\n" for n in range(60)) + f"{held}\n")
    (tmp_path / "test.txt").write_text(f"{held}\n")
    command = [sys.executable, str(root / "scripts/prepare_text.py"), "--format", "lines", "--lang", "en"]
    command += ["--source", "lines.txt", "--out-train", "train.txt", "--out-dev", "dev.txt", "--apart", "test.txt"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert held not in (tmp_path / "train.txt").read_text() + (tmp_path / "dev.txt").read_text()
    assert json.loads((tmp_path / "train.report.json").read_text())["dropped"]["in an evaluation set"] == 1


def test_text_is_kept_apart_from_all_that_a_run_is_tested_on(small):
    catalog = catalog_of(small)
    sheets = Sheets(catalog)
    texts = {data for data in catalog.sets() if data.kind == "text"}
    tested = {data for data in catalog.sets() if data.kind not in ("text", "bitext") and data.split != "train"}
    assert texts and tested
    seen = set()
    for data in texts:
        row = sheets.rows[f"data/text/{data.name}"]
        seen |= set(row["apart"])
        assert all(data.languages[0] in path or "xnlimixed" in path for path in row["apart"])
        assert row["settings"]["overlap"] == 8
    assert {path.split("/")[3] for path in seen} == {"trees", "ner", "nli", "qa", "parallel"}
    languages = {data.languages[0] for data in texts}
    missed = {data for data in tested if not data.latin and sheets.set(data) not in seen}
    assert not {data for data in missed if languages & set(data.languages)}
    # The papers' runs fetch models that have read what they have read.
    assert "apart" not in Sheets(catalog_of(load([]))).rows["data/text/wikipedia_wo"]


def test_stages_are_trainings_one_after_another(small):
    first, second, last = (trained_model(small, name) for name in ("small.stage1", "small.stage2", "small"))
    assert "init" not in first and (second["init"], last["init"]) == ("small.stage1", "small.stage2")
    assert (first["text"], second["text"], last["text"]) == ("cc100", ["cc100", "wikipedia"], ["cc100", "wikipedia"])
    assert len({first["seed"], second["seed"], last["seed"], trained_model(small, "small-2.stage2")["seed"]}) == 4
    assert texts_of(last)[:2] == [DataSet("text", "cc100_en", "train"), DataSet("text", "wikipedia_en", "train")]
    settings = pretrain_settings(small, "small")
    assert not {"hidden", "tuning_dropout"} & settings.keys() and settings["dropout"] == 0
    assert pretrain_settings(small, "small.stage1")["hidden"] == 768
    rows = Sheets(catalog_of(small)).rows
    assert rows["models/small"]["original"][0] == "results/small/models/small.stage2/model.safetensors"
    assert rows["models/small.stage1"]["vocabulary"] == ["results/small/vocabularies/small/tokenizer.json"]


def test_a_vocabulary_has_the_letters_of_other_languages(small):
    lines = ["aa bb ab ba"] * 5
    letters = letters_of([["ñññññ 77777", "é"]])
    assert letters == {"ñ"}
    tokenizer = train_vocabulary(lambda: lines, 30, up_to=True, letters=letters)
    unknown = tokenizer.token_to_id("[UNK]")
    assert unknown not in tokenizer.encode("añaña").ids and unknown in tokenizer.encode("é").ids
    letters = Sheets(catalog_of(small)).rows["vocabularies/small"]["letters"]
    assert "results/small/data/text/open_ug/train.txt" in letters


def test_words_and_tags_without_trees():
    report = Report()
    read = list(read_tagged(["wa-kana wa kana\t_ CCONJ AUX\n"], "ar.txt", report))
    assert [(each.forms, each.upos) for each in read] == [(["wa", "kana"], ["CCONJ", "AUX"])]
    assert report.counts["multiword_tokens"] == 1
    with pytest.raises(UserError, match="ar.txt, line 1: 2 words and 1 tags"):
        list(read_tagged(["a b\tX\n"], "ar.txt", Report()))


def test_languages_without_data_are_left_out_by_task(small):
    assert having(small, "sources", "pos") == ["en", "ru", "ar"] and having(small, "sources", "parsing") == ["en", "ru"]
    assert {"cs", "sl", "sv"} <= set(having(small, "languages", "pos")) - set(having(small, "languages", "ner"))
    runs = catalog_of(small).runs(["align-predict/table1"])
    assert {run.source for run in runs if getattr(run, "task", "") == "parsing"} == {"en_ewt", "ru_taiga"}
    assert "ar_padtpos" in {run.source for run in runs if getattr(run, "task", "") == "pos"}


def prepared(root, tmp_path, program, *options):
    command = [sys.executable, str(root / f"scripts/{program}.py"), *options, "--out", "out.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]


def test_snli_beside_multinli(root, tmp_path):
    for name in ("multinli", "snli"):
        pair = {"pairID": name, "sentence1": "It rains.", "sentence2": "It is wet.", "gold_label": "entailment"}
        with zipfile.ZipFile(tmp_path / f"{name}_1.0.zip", "w") as archive:
            lines = [pair, pair | {"gold_label": "-"}]
            archive.writestr(f"{name}_1.0/{name}_1.0_train.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    options = ["--format", "mix", "--lang", "en", "--split", "train", "--source", "multinli_1.0.zip", "snli_1.0.zip"]
    assert [pair["id"] for pair in prepared(root, tmp_path, "prepare_nli", *options)] == ["multinli", "snli"]


def test_the_vocabulary_is_looked_at_on_the_text_of_every_unseen_language(small):
    sheets, file = Sheets(catalog_of(small)), "results/small/coverage.csv"
    row = sheets.rows["coverage"]
    assert row["model"] == ["results/small/vocabularies/small/tokenizer.json"]
    assert {"open_ug", "open_fo"} <= {path.split("/")[-2] for path in row["texts"]}
    assert len(row["texts"]) == len(small["talk"]["languages"])
    assert file in sheets.target("talk") and file in sheets.target("all")
    assert sheets.rows["report"]["coverage"] == [file]
    # It is no item of a paper, and fetches no model for its own sake.
    assert file not in sheets.target("anc") and "coverage" not in "".join(sheets.items_of("all"))
    alone = Sheets(catalog_of(load([]) | {"items": ["talk/table3"]}))
    assert "coverage" not in alone.rows and alone.rows["report"]["coverage"] == []


@pytest.mark.parametrize("paper", ["adjust", "talk"])
def test_two_pretrainings_take_turns_over_the_seeds(small, paper, tmp_path):
    several = small | {paper: small[paper] | {"base": ["small", "small-2"]}}
    check(several)
    alone = small | {paper: small[paper] | {"base": "small"}}
    catalogs = [catalog_of(config) for config in (alone, several)]
    items = [item for item in catalogs[0].items if item.startswith(f"{paper}/")]
    one, two = (catalog.runs(items) for catalog in catalogs)
    began = {(run.seed, base_name(run)) for run in two if isinstance(run, Tuned) and run.model.startswith("small")}
    seeds = small[paper].get("seeds") or small["seeds"]
    assert began == {(seed, ("small-2", "small")[seed % 2]) for seed in seeds}
    assert sum(isinstance(run, Tuned) for run in one) == sum(isinstance(run, Tuned) for run in two)
    # Tables and figures ask for these runs and for no others.
    results = Results(tmp_path)
    for item in items:
        make(item, Context(several, results))
    assert len(results.asked) > 100 and results.asked <= two
    rows = Sheets(catalogs[1]).rows
    (pieces,) = (address for address in rows if address.endswith(".pieces"))
    row = rows[pieces if paper == "adjust" else "coverage"]
    assert row["model"] == ["results/small/vocabularies/small/tokenizer.json"]


def test_raw_text_is_named_by_what_was_read(small):
    assert sources(text_set(small, "ug")) == ["Tatoeba", "Ntrex", "Common voice"]
    assert sources(text_set(small, "gsw")) == ["Alsatian plays", "Noah wiki"]
    assert sources(text_set(load([]), "gsw")) == ["Wikipedia"]

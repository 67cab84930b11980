"""Any labelled data set: tables of the hub or of a folder become prepared sets that models are tuned and tested on."""

import csv
import gzip
import hashlib
import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import yaml
from tests.unit.made_results import load

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.config import check
from crossalign.catalog.labelled import hub_split, labelled
from crossalign.catalog.prepared import prepare_settings
from crossalign.catalog.runs import Catalog
from crossalign.catalog.sets import DataSet
from crossalign.catalog.sheets import Sheets
from crossalign.catalog.targets import evaluation_sets
from crossalign.data.labelled import listed_files, prepare_table
from crossalign.data.nli import read_multinli, read_pairs
from crossalign.data.report import Report
from crossalign.fetch.labelled import HubSplit, obtain_split
from crossalign.fetch.lock import Locked, read_lock, record
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

WORDS = [["Anna", "lives", "in", "New", "York"], ["IBM", "."]]
TAGS = [["B-PER", "O", "O", "B-LOC", "I-LOC"], ["B-ORG", "O"]]
NAMES = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]
ENTITIES = [
    {"id": f"train-{number}", "tokens": tokens, "tags": tags}
    for number, (tokens, tags) in enumerate(zip(WORDS, TAGS, strict=True), 1)
]
PAIRS = [("a, b", "null", "entailment"), ("007", 'the "NA"', "neutral"), ("x", "y", "contradiction")]


def parquet(path: Path, columns: dict, names: dict[str, list[str]] | None = None) -> Path:
    """A parquet file as the hub has them; `names` are those of numbers, in the schema's metadata."""
    table = pyarrow.table(columns)
    if names:
        features = {}
        for field in table.schema:
            named = {"names": names.get(field.name), "_type": "ClassLabel"}
            kind = named if field.name in names else {"dtype": "string", "_type": "Value"}
            features[field.name] = {"feature": kind, "_type": "List"} if pyarrow.types.is_list(field.type) else kind
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pyarrow.parquet.write_table(table, path)
    return path


def lines(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def table(path: Path, header: list[str], rows: list) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def prepared(files, task, columns=None, labels=None):
    files = [files] if isinstance(files, Path) else files
    out, report = StringIO(), Report()
    prepare_table(files, task, columns or {}, labels, "train", out, report)
    return out.getvalue(), report.as_dict()


def rows_of(*given, **more):
    return [json.loads(line) for line in prepared(*given, **more)[0].splitlines()]


# Tables become prepared sets


def entity_files(folder):
    numbers = [[NAMES.index(tag) for tag in tags] for tags in TAGS]
    spaced = [[" ".join(words), " ".join(tags)] for words, tags in zip(WORDS, TAGS, strict=True)]
    named = parquet(folder / "a.parquet", {"tokens": WORDS, "ner_tags": numbers}, {"ner_tags": NAMES})
    yield named, {}
    # Where the table names its numbers, a list only says which names may occur.
    yield named, {"labels": sorted(NAMES)}
    yield parquet(folder / "b.parquet", {"tokens": WORDS, "ner_tags": numbers}), {"labels": NAMES}
    yield parquet(folder / "c.parquet", {"tokens": WORDS, "ner_tags": TAGS}), {}
    dicts = [{"words": words, "y": tags} for words, tags in zip(WORDS, TAGS, strict=True)]
    yield lines(folder / "a.jsonl", dicts), {"columns": {"tokens": "words", "tags": "y"}}
    yield table(folder / "a.csv", ["tokens", "ner_tags"], spaced), {}
    (folder / "a.tsv").write_text("tokens\tner_tags\n" + "".join("\t".join(row) + "\n" for row in spaced))
    yield folder / "a.tsv", {}


def test_entities_of_every_kind_of_table(tmp_path):
    made = [rows_of(file, "ner", **how) for file, how in entity_files(tmp_path)]
    assert made == [ENTITIES] * 7


def test_files_are_read_in_order(tmp_path):
    files = [
        parquet(tmp_path / f"[{name}] *.parquet", {"tokens": [words], "ner_tags": [tags]})
        for name, words, tags in zip("ab", WORDS, TAGS, strict=True)
    ]
    # A file without rows, as some sets of the hub have them, is no fault.
    files.append(parquet(tmp_path / "empty.parquet", {"tokens": [], "ner_tags": []}))
    made, report = prepared(files, "ner")
    assert [json.loads(line) for line in made.splitlines()] == ENTITIES
    assert report | {"kept": 2, "entities": 3, "tags": ["O", "B-LOC", "I-LOC", "B-ORG", "B-PER"]} == report


def test_pairs(tmp_path):
    header, labels = ["premise", "hypothesis", "label"], ["entailment", "neutral", "contradiction"]
    expected = [{"id": f"train-{number}"} | dict(zip(header, row, strict=True)) for number, row in enumerate(PAIRS, 1)]
    numbers = [(first, second, labels.index(label)) for first, second, label in PAIRS]
    columns = dict(zip(header, map(list, zip(*numbers, strict=True)), strict=True))
    assert rows_of(parquet(tmp_path / "a.parquet", columns, {"label": labels}), "nli") == expected
    # The words null and NA, and a number with zeros in front, stay what they are.
    assert rows_of(table(tmp_path / "a.csv", header, PAIRS), "nli") == expected
    assert rows_of(table(tmp_path / "b.csv", header, numbers), "nli", labels=labels) == expected
    short = [(first, second, label[0]) for first, second, label in PAIRS]
    renamed = {label[0]: label for label in labels}
    assert rows_of(table(tmp_path / "c.csv", header, short), "nli", labels=renamed) == expected


def test_pairs_without_label_are_dropped_and_identifiers_kept(tmp_path):
    labels = [("a", 1), ("a", 0), ("b", -1)]
    rows = [{"id": name, "premise": "p", "hypothesis": "h", "label": label} for name, label in labels]
    made, report = prepared(lines(tmp_path / "a.jsonl", rows), "nli", labels=["same", "other"])
    assert [(row["id"], row["label"]) for row in map(json.loads, made.splitlines())] == [
        ("a", "other"),
        ("a#2", "same"),
    ]
    assert report["dropped"] == {"no label": 1}
    assert report["repaired"] == {"repeated identifier made unique": 1}


def test_tagged_words_become_a_treebank_without_trees(tmp_path):
    from crossalign.tasks import get_task

    names = ["NOUN", "VERB", "CONJ", "_"]
    tokens = [["dogs", "\u200b", "bark\t!"], ["and"], ["\u200e"]]
    file = parquet(tmp_path / "a.parquet", {"tokens": tokens, "upos": [[0, 3, 1], [2], [3]]}, {"upos": names})
    made, report = prepared(file, "pos")
    assert report | {"read": 3, "kept": 2, "dropped": {"no token left": 1}, "words": 3} == report
    place = tmp_path / "train.conllu"
    place.write_text(made, encoding="utf-8")
    assert get_task("pos").read(place) == [
        {"id": "train-1", "words": ["dogs", "bark !"], "upos": ["NOUN", "VERB"]},
        {"id": "train-2", "words": ["and"], "upos": ["CCONJ"]},
    ]
    with pytest.raises(UserError, match="head '_' is not a number"):
        get_task("parsing").read(place)


def test_questions(tmp_path):
    head = {"id": "7", "question": "Where?", "context": "Rome is big"}
    # Columns of lists and lists of columns; a wrong offset is mended.
    for answers in ({"text": ["Rome"], "answer_start": [0]}, [{"text": "Rome", "answer_start": 0}]):
        made = rows_of(lines(tmp_path / "a.jsonl", [head | {"answers": answers}]), "qa")
        assert made == [head | {"answers": [{"text": "Rome", "start": 0}]}]
    moved = {"text": ["big"], "answer_start": [9]}
    made, report = prepared(lines(tmp_path / "a.jsonl", [head | {"answers": moved}]), "qa")
    assert json.loads(made)["answers"] == [{"text": "big", "start": 8}]
    assert report["repaired"] == {"answer offset": 1}


ENTITY_COLUMNS = {"tokens": WORDS, "ner_tags": TAGS}
ZEROS = [[0] * 5, [0] * 2]
PAIR = {"premise": "p", "hypothesis": "h", "label": "same"}
QUESTION = {"question": "q", "context": "c", "answers": {"text": ["c"]}}


# A dictionary becomes a parquet file, a list JSON lines; then the task, more settings, and the sentence.
@pytest.mark.parametrize(
    ("content", "task", "more", "sentence"),
    [
        (ENTITY_COLUMNS, "pos", {}, "a.parquet: no column 'upos' for the tags; the columns are tokens, ner_tags"),
        (ENTITY_COLUMNS, "ner", {"columns": {"label": "x"}}, "'label' is nothing that ner reads; it reads tokens, t"),
        ([PAIR, PAIR | {"label": "odd"}], "nli", {"labels": ["b", "same"]}, "row 2: label 'odd' is none of b, same"),
        (ENTITY_COLUMNS, "ner", {"labels": ["B-PER", "O", "B-LOC", "I-LOC"]}, "row 2: label 'B-ORG' is none of B-LOC"),
        (ENTITY_COLUMNS | {"ner_tags": ZEROS}, "ner", {}, "row 1: column 'ner_tags' has numbers without names; list"),
        ([{"tokens": ["a"], "ner_tags": ["PER"]}], "ner", {}, "row 1: 'PER' is no tag of entities .*under `labels`"),
        ([{"tokens": ["a", "b"], "ner_tags": ["O"]}], "ner", {}, "row 1: 2 tokens, but 1 tags"),
        ([{"tokens": [1], "ner_tags": ["O"]}], "ner", {}, "row 1: a token in column 'tokens' that is no text"),
        ([{"tokens": 3, "ner_tags": ["O"]}], "ner", {}, "row 1: '3' in column 'tokens', where a list should stand"),
        ([PAIR | {"premise": None}, PAIR], "nli", {}, "row 1: 'None' in column 'premise', where text should stand"),
        ([QUESTION], "qa", {}, "row 1: .* in column 'answers', where text and answer_start should stand"),
        ([QUESTION], "qa", {"labels": ["x"]}, "labels: qa has no labels"),
        ({"tokens": [], "ner_tags": []}, "ner", {}, "a.parquet: nothing to keep .no rows in it"),
    ],
)  # fmt: skip
def test_one_sentence_for_each_fault(tmp_path, content, task, more, sentence):
    name, write = ("a.jsonl", lines) if isinstance(content, list) else ("a.parquet", parquet)
    with pytest.raises(UserError, match=sentence) as caught:
        prepared(write(tmp_path / name, content), task, **more)
    assert "\n" not in str(caught.value)


def test_real_pairs_are_read_as_by_their_own_readers(shared, tmp_path):
    own = Report()
    source = shared / "data" / "xnli" / "sw.dev.tsv.gz"
    with gzip.open(source, "rt", encoding="utf-8", newline="\n") as stream:
        expected = list(read_pairs(stream, "xnli", own))
    assert [row | {"id": ""} for row in rows_of(source, "nli")] == [row | {"id": ""} for row in expected]
    with gzip.open(shared / "data" / "snli" / "snli_1.0_train_subset.jsonl.gz", "rt", encoding="utf-8") as stream:
        head = [next(stream) for _ in range(2000)]
    expected = list(read_multinli(head, "snli", own))
    (tmp_path / "snli.jsonl").write_text("".join(head), encoding="utf-8")
    columns = {"premise": "sentence1", "hypothesis": "sentence2", "label": "gold_label", "id": "pairID"}
    assert rows_of(tmp_path / "snli.jsonl", "nli", columns) == expected


# Files come from the hub

ONE = "1" * 40
HUB = "own/entities"
FILES = {
    "README.md": b"# read me",
    "wo/train-00000-of-00002.parquet": b"first",
    "wo/train-00001-of-00002.parquet": b"second",
    "wo/test-00000-of-00001.parquet": b"test",
    "de/train-00000-of-00001.parquet": b"german",
    "entities.py": b"raise SystemExit",
}
ASKED = HubSplit("mine_wo", "train", HUB, ONE, "wo/train-*.parquet")


def test_only_the_files_of_the_split_are_fetched_and_locked(web, place):
    web.publish("datasets", HUB, ONE, FILES)
    mark = obtain_split(ASKED, place)
    assert mark == place.downloads / "datasets" / "mine_wo" / "train" / "complete.json"
    names = ["wo/train-00000-of-00002.parquet", "wo/train-00001-of-00002.parquet"]
    assert listed_files(mark) == [mark.parent / name for name in names]
    assert [file.read_bytes() for file in listed_files(mark)] == [FILES[name] for name in names]
    row = read_lock(place.lock)[f"datasets/mine_wo/train/{names[0]}"]
    assert (row.version, row.url) == (ONE, f"hub://datasets/{HUB}/{names[0]}")
    assert row.sha256 == hashlib.sha256(FILES[names[0]]).hexdigest()
    fetched = {asked.path for asked in web.gets() if "/resolve/" in asked.path}
    assert fetched == {f"/datasets/{HUB}/resolve/{ONE}/{name}" for name in names}
    # What is there is only checked; offline it will do.
    obtain_split(ASKED, replace(place, offline=True))
    assert {asked.path for asked in web.gets() if "/resolve/" in asked.path} == fetched


@pytest.mark.parametrize(
    ("files", "asked", "sentence"),
    [
        (FILES, {"files": "xx/*"}, "no table fits 'xx/.' .*it has de/train-00000-of-00001.parquet, wo/test-0"),
        ({"entities.py": b"", "README.md": b""}, {}, "loading script entities.py, which is never run; the revision "
         "refs/convert/parquet of most data sets has parquet files"),
        ({"README.md": b""}, {}, "no table fits 'wo/train-.*' .*it has none at all"),
        (FILES, {"hub": "own/none"}, "cannot get dataset mine_wo/train (.|\n)*own/none at revision 1+: .*HTTP 404"),
    ],
)  # fmt: skip
def test_what_the_hub_lacks_is_told(web, place, files, asked, sentence):
    web.publish("datasets", HUB, ONE, files)
    with pytest.raises(UserError, match=sentence):
        obtain_split(replace(ASKED, **asked), place)
    assert not list(place.downloads.rglob("complete.json"))


# The catalog knows them

ENTRY = {"task": "ner", "languages": ["wo", "pcm"], "splits": {"train": "{lang}/train*", "test": "{lang}/test*"}}
ON_HUB = {"hub": HUB, "revision": ONE}


def config_with(root, **entries):
    config = load(root)
    config["datasets"] = entries
    return config


def test_a_set_of_the_hub_is_fetched_and_prepared(root):
    config = config_with(root, mine=ENTRY | ON_HUB | {"columns": {"tags": "y"}, "labels": {"1": "B-PER", "0": "O"}})
    check(config)
    data = DataSet("ner", "mine_wo", "test")
    assert hub_split(config, "mine_wo", "test") == HubSplit("mine_wo", "test", HUB, ONE, "wo/test*")
    told = {"task": "ner", "columns": ["tags=y"], "labels": ["1=B-PER", "0=O"]}
    assert prepare_settings(config, data) == told
    assert labelled(config, DataSet("ner", "mine_de", "test")) is None
    assert labelled(config, DataSet("nli", "mine_wo", "test")) is None


def test_a_model_is_tested_in_all_languages_of_its_set(root):
    config = config_with(root, mine=ENTRY | ON_HUB, words=ENTRY | ON_HUB | {"task": "pos"})
    tests = evaluation_sets(config, Tuned("mbert", "ner", "mine_wo", "ref", 1))
    assert tests == [DataSet("ner", "mine_pcm", "test"), DataSet("ner", "mine_wo", "test")]
    tests = evaluation_sets(config, Tuned("mbert", "pos", "wo_words", "ref", 1))
    assert tests == [DataSet("trees", "pcm_words", "test"), DataSet("trees", "wo_words", "test")]
    lacking = "datasets.mine.splits: no 'dev', which is needed of mine_wo; there are train, te"
    with pytest.raises(UserError, match=lacking):
        hub_split(config, "mine_wo", "dev")


def test_an_item_tests_on_a_set_by_its_name(root, tmp_path):
    from crossalign.papers.all_items import catalog_of
    from crossalign.report.provenance import Sources

    config = config_with(root, mine=ENTRY | ON_HUB)
    config["items"] = ["align-predict/table2"]
    config["align-predict"]["domains"]["ner"] = ["wikiann_en", "mine_wo"]
    check(config)
    catalog = catalog_of(config)
    assert [split.complete for split in catalog.hub_splits()] == ["datasets/mine_wo/test/complete.json"]
    assert not any("mine" in path for path in catalog.files())
    sheets, complete = Sheets(catalog), f"{config['downloads']['folder']}/datasets/mine_wo/test/complete.json"
    row = sheets.rows["data/ner/mine_wo/test"]
    assert (row["program"], row["sources"]) == ("prepare_labelled.py", [complete]) and complete in sheets.fetched()
    # The page names the files that were fetched.
    files = ["datasets/mine_wo/test/wo/test-0.parquet", "datasets/mine_wo/train/wo/train-0.parquet"]
    record(tmp_path / config["downloads"]["lock"], [Locked(path, ONE, 3, "a" * 64, "hub://…") for path in files])
    data = Sources(catalog, tmp_path / "results" / "x").data("align-predict/table2")
    assert files[0] in data
    assert files[1] not in data
    assert set(catalog.files()) < set(data)


def test_the_entries_of_the_documents_are_right(root):
    page = (root / "docs" / "extend" / "data-set.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    entries = {name: entry for block in blocks for name, entry in yaml.safe_load(block)["datasets"].items()}
    assert {entry["task"] for entry in entries.values()} == {"ner", "nli", "qa"}
    for name, entry in entries.items():
        # Its folder is the reader's own; that it is looked into is another test's.
        entry = entry | ({"hub": "own/set", "revision": "main"} if entry.pop("folder", None) else {})
        check(config_with(root, **{name: entry}))
        assert f"{name}_{next(iter(entry['languages']))}" in page


def test_a_folder_is_read_where_it_lies(root, tmp_path):
    for name in ("wo/train.csv", "wo/test.csv", "pcm/train.csv", "pcm/test-a.csv", "pcm/test-b.csv", "pcm/notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    config = config_with(root, mine=ENTRY | {"folder": str(tmp_path)})
    check(config)
    files = labelled(config, DataSet("ner", "mine_pcm", "test")).local_files()
    assert [file.name for file in files] == ["test-a.csv", "test-b.csv"]
    assert Catalog(config, {}).hub_splits([]) == []
    for change, sentence in (
        ({"languages": ["wo", "ru"]}, r"no table fits 'ru/train\*' .*it has pcm/test-a.csv, pcm/tes"),
        ({"folder": str(tmp_path / "none")}, "none: no such folder"),
    ):
        config["datasets"]["mine"] = ENTRY | {"folder": str(tmp_path)} | change
        with pytest.raises(UserError, match=f"datasets.mine.splits.train: .*{sentence}"):
            check(config)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"hub": None}, ".hub: None is not allowed; expected <owner>/<name>"),
        ({"folder": "x"}, ": give either 'hub' and 'revision', or 'folder'"),
        ({"languages": ["wo", "xx"]}, ".languages: 'xx' is not in resources/languages.tsv"),
        ({"task": "parsing"}, ".task: 'parsing' is not allowed; expected one of ner, pos, nli, qa"),
        ({"columns": {"word": "a"}}, ".columns: 'word' is not allowed as a key"),
        ({"splits": {"train": "train*"}}, ".splits.train: 'train*' is the same for all languages"),
        ({"splits": {"train": "{language}*"}}, ".splits.train: '{language}*' is not allowed"),
    ],
)
def test_a_wrong_entry_is_told(root, change, sentence):
    with pytest.raises(UserError, match=re.escape(f"datasets.mine{sentence}")):
        check(config_with(root, mine=ENTRY | ON_HUB | change))


def test_a_set_that_nobody_describes_is_told(root):
    config = config_with(root)
    config["align-predict"]["domains"]["ner"] = ["mine_wo"]
    with pytest.raises(UserError, match=r"ner\[0\]: 'mine_wo' is neither of WikiANN or CoNLL-2003 nor of `datasets`"):
        check(config)
